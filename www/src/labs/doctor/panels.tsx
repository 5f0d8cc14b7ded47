/** What the prompt doctor found in two prompts. */
import type { MissExplanation, MissSide } from 'pagewise';
import type { JSX } from 'preact';
import { lang } from '../../i18n';
import { formatCount, formatPercent } from '../../i18n/format';
import { Panel, Readout, Readouts } from '../../ui/kit';
import { EngineGate } from '../shared/engine-gate';
import { Tokens } from '../shared/tokens';
import { causeText } from './causes';
import type { ModelPrompt, ModelView } from './lab';
import { t } from './text';

export function FoundPanel({ found }: { found: MissExplanation }): JSX.Element {
  const { cause, also, place, previous, next, size, fraction, miss } = found;
  const { name, advice } = causeText(cause);
  const unit = size.unit === 'tokens' ? t('unitTokens') : t('unitCharacters');
  return (
    <Panel title={name} class="found">
      <Readouts>
        <Readout
          label={t('reused')}
          value={formatPercent(fraction.reused)}
          note={t('reusedNote', { shared: formatCount(size.shared), next: formatCount(size.next), unit })}
          tone={fraction.reused > 0.5 ? 'good' : 'bad'}
        />
        <Readout
          label={t('lost')}
          value={formatPercent(fraction.lost)}
          note={t('lostNote')}
          tone={miss ? 'bad' : 'good'}
        />
        {place && (
          <Readout
            label={t('place')}
            value={placeName(place)}
            note={t('character', { at: formatCount(place.character) })}
          />
        )}
      </Readouts>
      {previous && next && (
        <div class="side-by-side">
          <Side name={t('previous')} side={previous} />
          <Side name={t('next')} side={next} />
        </div>
      )}
      {advice !== '' && <p class="advice">{advice}</p>}
      {also.length > 0 && (
        <p class="help">{t('also', { causes: also.map((one) => causeText(one).name).join(', ') })}</p>
      )}
      {lang.value === 'en' && found.advice && <p class="help">{found.advice}</p>}
    </Panel>
  );
}

function placeName({ part, message, role }: NonNullable<MissExplanation['place']>): string {
  switch (part) {
    case 'model':
      return t('placeModel');
    case 'template':
      return t('placeTemplate');
    case 'tools':
      return t('placeTools');
    case 'text':
      return t('placeText');
    case 'message':
      return t('placeMessage', { number: (message ?? 0) + 1, role: role ?? '' });
  }
}

function Side({ name, side }: { name: string; side: MissSide }): JSX.Element {
  return (
    <div class="side">
      <h3>{name}</h3>
      <pre>
        <span class="same">{side.before}</span>
        <mark>{side.text}</mark>
        {side.after}
      </pre>
    </div>
  );
}

/** The two prompts as the loaded model gets them. */
export function ModelPanel({ view, hasEngine }: { view: ModelView | null; hasEngine: boolean }): JSX.Element | null {
  if (!hasEngine) return <EngineGate why={t('modelWhy')}>{() => null}</EngineGate>;
  if (!view) return null;
  return (
    <Panel title={t('rendered')} lead={t('renderedLead', { shared: view.shared, count: view.next.ids.length })}>
      <div class="side-by-side">
        <Rendered name={t('previous')} prompt={view.previous} />
        <Rendered name={t('next')} prompt={view.next} />
      </div>
      <ul class="key">
        <li class="reused">{t('sharedTokens')}</li>
        <li class="computed">{t('differentTokens')}</li>
      </ul>
    </Panel>
  );
}

function Rendered({ name, prompt }: { name: string; prompt: ModelPrompt }): JSX.Element {
  return (
    <div class="side">
      <h3>{name}</h3>
      <Tokens label={name} runs={prompt.runs} />
      <details>
        <summary>{t('ids', { count: prompt.ids.length })}</summary>
        <p class="ids">{prompt.ids.join(' ')}</p>
      </details>
    </div>
  );
}
