/** The pieces that views are made of. */
export { Button, Choices, IconButton, Slider, Switch } from './controls';
export { Dialog } from './dialog';
export { Icon, type IconName, Mark } from './icons';
export { Panel, Readout, Readouts } from './panel';
