import type { Translation } from '..';
import type { labs as en } from '../en/labs';

/** What the labs have in common. */
export const labs: Translation<typeof en> = {
  asTable: '以表格显示',
  needsModel: '需要一个模型',
  loadModel: '加载模型',
  stop: '停止',
  run: '运行',
  tokensHidden: { other: '… 还有 {count} 个 token …' },
  reused: '从缓存复用',
  computed: '重新计算',
  generated: '生成',
  other: 'token',
  blockEnd: '一个块（16 个 token）的结尾',
};
