/** The documents lab: the library, its search, and where passages belong in a prompt. */
import type { JSX } from 'preact';
import { useEffect, useMemo, useState } from 'preact/hooks';
import { documentsOf, sizingOf } from '../../documents/context';
import { DocumentList } from '../../documents/document-list';
import type { SourceRecord } from '../../documents/source';
import { SourceView } from '../../documents/source-dialog';
import { t } from '../../documents/text';
import { lang } from '../../i18n';
import { LabView } from '../../shell/lab-view';
import { useSession } from '../../ui/context';
import { Button, Panel } from '../../ui/kit';
import { EngineGate } from '../shared/engine-gate';
import { SearchState } from './lab';
import { OrderPanel } from './order-panel';
import { isSample } from './questions';
import { sampleFor } from './sample';
import { SearchPanel } from './search-panel';
import '../shared/lab.css';
import '../cache/cache.css';
import '../../documents/sources.css';
import './documents.css';

export default function DocumentsLab(): JSX.Element {
  const session = useSession();
  const library = documentsOf(session);
  const search = useMemo(() => new SearchState(library), [library]);
  const [opened, setOpened] = useState<SourceRecord | null>(null);
  const { list, readings } = library;
  const sample = sampleFor(lang.value);
  const isThere =
    list.value === null ||
    list.value.some((document) => isSample(document, sample)) ||
    readings.value.some(({ name }) => name === sample.name);

  useEffect(() => {
    const take = (files: readonly File[]): void => void library.add(files, () => sizingOf(session));
    session.takeFiles.value = take;
    return () => {
      session.takeFiles.value = null;
    };
  }, [library, session]);

  const addSample = (): void => {
    const { name, text } = sample;
    void library.add([new File([text], name, { type: 'text/markdown' })], () => sizingOf(session));
  };

  return (
    <LabView lead={t('lead')}>
      <Panel title={t('library')} lead={t('libraryLead')}>
        <DocumentList onOpen={setOpened} />
        {!isThere && (
          <div class="actions">
            <Button icon="book" onClick={addSample}>
              {t('addSample')}
            </Button>
          </div>
        )}
      </Panel>
      <SearchPanel search={search} onOpen={setOpened} />
      <EngineGate why={t('why')}>
        {(engine) => <OrderPanel key={engine.info.id + engine.info.contextLength} engine={engine} />}
      </EngineGate>
      {opened && <SourceView source={opened} onClose={() => setOpened(null)} />}
    </LabView>
  );
}
