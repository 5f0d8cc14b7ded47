/** What the chat shows of documents before anything of theirs is loaded. */
export const sources = {
  documents: 'Documents',
  documentsOn: 'Documents: used in this conversation',
  sources: 'Sources',
  sourceOf: 'Source {number}: {title}, {place}',
  page: 'page {page}',
  cited: 'cited',
  notCited: 'not cited',
  noneFound: 'Nothing in your documents fits this question.',
  addInstead: 'Add to documents',
} as const;
