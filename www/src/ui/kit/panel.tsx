/** Panels and the numbers in them. */
import type { ComponentChildren, JSX } from 'preact';
import { useId } from 'preact/hooks';

export interface PanelProps {
  readonly title: string;
  /** A sentence under the title. */
  readonly lead?: string;
  /** Beside the title: a button or two. */
  readonly actions?: ComponentChildren;
  readonly children: ComponentChildren;
  readonly class?: string;
}

/** A titled part of a view. */
export function Panel({ title, lead, actions, children, class: more = '' }: PanelProps): JSX.Element {
  const id = useId();
  return (
    <section class={`panel ${more}`} aria-labelledby={id}>
      <div class="panel-head">
        <h2 id={id}>{title}</h2>
        {actions && <div class="panel-actions">{actions}</div>}
      </div>
      {lead && <p class="panel-lead">{lead}</p>}
      {children}
    </section>
  );
}

/** A row of numbers that belong together; its children are `Readout`s. */
export function Readouts({ label, children }: { label?: string; children: ComponentChildren }): JSX.Element {
  return (
    <dl class="readouts" aria-label={label}>
      {children}
    </dl>
  );
}

export interface ReadoutProps {
  readonly label: string;
  /** Formatted, with its unit where it belongs to the number. */
  readonly value: string;
  /** Smaller, behind the number. */
  readonly unit?: string;
  /** Below: what it means or what it was before. */
  readonly note?: string;
  readonly tone?: 'plain' | 'good' | 'bad';
}

/** One number, large, with its name. */
export function Readout({ label, value, unit, note, tone = 'plain' }: ReadoutProps): JSX.Element {
  return (
    <div class={`readout ${tone}`}>
      <dt>{label}</dt>
      <dd>
        <span class="readout-value">{value}</span>
        {unit && <span class="readout-unit">{unit}</span>}
        {note && <span class="readout-note">{note}</span>}
      </dd>
    </div>
  );
}
