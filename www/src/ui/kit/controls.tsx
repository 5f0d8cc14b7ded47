/** Buttons, choices and switches, each with a label that is always there. */
import type { ComponentChildren, JSX } from 'preact';
import { useId } from 'preact/hooks';
import { Icon, type IconName } from './icons';

export interface ButtonProps {
  readonly children: ComponentChildren;
  readonly onClick?: (event: JSX.TargetedMouseEvent<HTMLButtonElement>) => void;
  readonly kind?: 'plain' | 'primary' | 'quiet' | 'danger';
  readonly icon?: IconName;
  readonly type?: 'button' | 'submit';
  readonly disabled?: boolean;
  readonly class?: string;
  /** Where the words alone do not say enough. */
  readonly label?: string;
  readonly opens?: 'dialog' | 'menu';
  readonly pressed?: boolean;
}

/** A button with words. */
export function Button({
  kind = 'plain',
  type = 'button',
  icon,
  children,
  label,
  opens,
  pressed,
  ...rest
}: ButtonProps) {
  const look = kind === 'plain' ? 'button' : `button ${kind}`;
  return (
    <button
      {...rest}
      type={type}
      class={rest.class ? `${look} ${rest.class}` : look}
      aria-label={label}
      aria-haspopup={opens}
      aria-pressed={pressed}
    >
      {icon && <Icon name={icon} />}
      {children}
    </button>
  );
}

export interface IconButtonProps {
  readonly icon: IconName;
  /** Its name, also shown when it is pointed at. */
  readonly label: string;
  readonly onClick?: (event: JSX.TargetedMouseEvent<HTMLButtonElement>) => void;
  readonly disabled?: boolean;
  readonly class?: string;
  readonly opens?: 'dialog' | 'menu';
  readonly expanded?: boolean;
}

/** A button that is an icon. */
export function IconButton({ icon, label, opens, expanded, ...rest }: IconButtonProps): JSX.Element {
  return (
    <button
      {...rest}
      type="button"
      class={rest.class ? `icon-button ${rest.class}` : 'icon-button'}
      aria-label={label}
      title={label}
      aria-haspopup={opens}
      aria-expanded={expanded}
    >
      <Icon name={icon} />
    </button>
  );
}

export interface ChoicesProps<Value extends string> {
  readonly label: string;
  readonly options: readonly { readonly value: Value; readonly label: string }[];
  readonly value: Value;
  readonly onChange: (value: Value) => void;
  /** Whether the label is only for screen readers. */
  readonly hideLabel?: boolean;
  readonly disabled?: boolean;
}

/** One of a few: radio buttons side by side. */
export function Choices<Value extends string>(props: ChoicesProps<Value>): JSX.Element {
  const id = useId();
  return (
    <div class="choice-field">
      <span id={id} class={props.hideLabel ? 'visually-hidden' : ''}>
        {props.label}
      </span>
      <div class="choices" role="radiogroup" aria-labelledby={id}>
        {props.options.map(({ value, label }) => (
          <label key={value}>
            <input
              type="radio"
              name={id}
              checked={props.value === value}
              disabled={props.disabled}
              onChange={() => props.onChange(value)}
            />
            {label}
          </label>
        ))}
      </div>
    </div>
  );
}

export interface SwitchProps {
  readonly label: string;
  readonly help?: string;
  readonly checked: boolean;
  readonly onChange: (checked: boolean) => void;
  readonly disabled?: boolean;
}

/** On or off. */
export function Switch({ label, help, checked, onChange, disabled }: SwitchProps): JSX.Element {
  const id = useId();
  return (
    <div class="field switch-field">
      <label class="field-head">
        <span>{label}</span>
        <input
          type="checkbox"
          role="switch"
          aria-checked={checked}
          class="switch"
          checked={checked}
          disabled={disabled}
          aria-describedby={help ? id : undefined}
          onChange={(event) => onChange(event.currentTarget.checked)}
        />
      </label>
      {help && (
        <p class="help" id={id}>
          {help}
        </p>
      )}
    </div>
  );
}

export interface SliderProps {
  readonly label: string;
  readonly value: number;
  readonly min: number;
  readonly max: number;
  readonly step?: number;
  /** The value as it is read, with its unit. */
  readonly shown: string;
  readonly help?: string;
  readonly onChange: (value: number) => void;
  readonly disabled?: boolean;
}

/** A number within bounds. */
export function Slider({ label, shown, help, onChange, ...input }: SliderProps): JSX.Element {
  const id = useId();
  return (
    <div class="field">
      <div class="field-head">
        <label for={id}>{label}</label>
        <output for={id} class="slider-value">
          {shown}
        </output>
      </div>
      <input
        {...input}
        id={id}
        type="range"
        aria-valuetext={shown}
        aria-describedby={help ? `${id}-help` : undefined}
        onInput={(event) => onChange(Number(event.currentTarget.value))}
      />
      {help && (
        <p class="help" id={`${id}-help`}>
          {help}
        </p>
      )}
    </div>
  );
}
