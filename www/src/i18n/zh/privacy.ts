import type { privacy as en } from '../en/privacy';
import type { Translation } from '../messages';

export const privacy: Translation<typeof en> = {
  title: '隐私与存储',
  lead: '模型在此页面中、在你自己的 GPU 上计算。你写的内容、模型的回答和附加或作为文档添加的文件都不会发送到任何地方：没有服务器，没有账号，也没有统计。',
  network: '网络只用于获取页面本身，以及在你加载模型时从所示地址获取模型。之后一切都可离线使用。',
  stored: '保存在本设备的这个浏览器中',
  chats: '对话和提示词',
  chatsPlace: { other: '{count} 个对话，位于 IndexedDB' },
  documents: '文档的段落',
  documentsPlace: { other: '{count} 个文档，位于 IndexedDB；不保存文件本身' },
  models: '模型',
  modelsPlace: '位于源私有文件系统（或 IndexedDB）',
  deleteModel: '从本设备删除 {name}',
  page: '页面本身（供离线使用）',
  pagePlace: '位于缓存存储，包括对 GPU 的测量结果；由 service worker 保存',
  settings: '设置、语言和配色',
  settingsPlace: '位于本地存储',
  unknown: '未知',
  owner:
    '使用此浏览器配置文件的人都可以读取这些内容。在这里清除会从本设备移除；已导出的文件不受影响。导出的对话包含回答所用的段落，但不包含文档。',
  erase: '清除全部内容',
  eraseSure: '所有对话、提示词、文档、模型和设置都将永久消失。已导出的文件不受影响。',
  eraseNow: '永久清除',
  erasedAll: '已全部清除。可以关闭页面，或重新开始。',
  erasedSome: '部分内容仍被其他标签页占用。请关闭其他标签页后再次清除。尚未清除：',
  begin: '重新开始',
};
