/** What the labs have in common. */
export const labs = {
  asTable: 'As a table',
  needsModel: 'A model is needed',
  loadModel: 'Load the model',
  stop: 'Stop',
  run: 'Run',
  tokensHidden: { one: '… {count} more token …', other: '… {count} more tokens …' },
  reused: 'Reused from the cache',
  computed: 'Computed',
  generated: 'Generated',
  other: 'Token',
  blockEnd: 'End of a block of 16 tokens',
} as const;
