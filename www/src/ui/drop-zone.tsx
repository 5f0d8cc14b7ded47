/** Takes files dropped anywhere on the page: models, and what the view can use. */
import { useSignal } from '@preact/signals';
import type { JSX } from 'preact';
import { useEffect } from 'preact/hooks';
import { choiceFromFiles } from '../state/models';
import { t } from '../state/settings-text';
import { useSession } from './context';

export function DropZone(): JSX.Element | null {
  const session = useSession();
  // Enter and leave fire for every element passed over, so they are counted.
  const depth = useSignal(0);

  useEffect(() => {
    const hasFiles = (event: DragEvent): boolean => event.dataTransfer?.types.includes('Files') ?? false;
    const enter = (event: DragEvent): void => {
      if (hasFiles(event)) depth.value += 1;
    };
    const leave = (event: DragEvent): void => {
      if (hasFiles(event)) depth.value = Math.max(0, depth.value - 1);
    };
    // Without this the browser opens a dropped file in place of the page.
    const over = (event: DragEvent): void => {
      if (hasFiles(event)) event.preventDefault();
    };
    const drop = (event: DragEvent): void => {
      if (!hasFiles(event)) return;
      event.preventDefault();
      depth.value = 0;
      const files = [...(event.dataTransfer?.files ?? [])];
      const take = session.takeFiles.peek();
      // Model files load; everything else is the view's, if it takes files, and else shown to be no model.
      if (take && files.length > 0 && !files.some(({ name }) => /\.gguf$/i.test(name))) {
        take(files);
        return;
      }
      const choice = choiceFromFiles(files);
      if (choice) void session.load(choice);
    };
    const listeners = { dragenter: enter, dragleave: leave, dragover: over, drop } as const;
    for (const [name, listener] of Object.entries(listeners)) addEventListener(name, listener as EventListener);
    return () => {
      for (const [name, listener] of Object.entries(listeners)) removeEventListener(name, listener as EventListener);
    };
  }, []);

  return depth.value > 0 ? <div class="drop">{session.takeFiles.value ? t('dropFiles') : t('dropModel')}</div> : null;
}
