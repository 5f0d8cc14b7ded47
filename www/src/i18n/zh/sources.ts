import type { sources as en } from '../en/sources';
import type { Translation } from '../messages';

export const sources: Translation<typeof en> = {
  documents: '文档',
  documentsOn: '文档：用于此对话',
  sources: '来源',
  sourceOf: '来源 {number}：{title}，{place}',
  page: '第 {page} 页',
  cited: '已引用',
  notCited: '未引用',
  noneFound: '你的文档中没有与此问题相关的内容。',
  addInstead: '添加到文档',
};
