import type { Translation } from '..';
import type { memory as en } from '../en/memory';

/** The memory lab. */
export const memory: Translation<typeof en> = {
  lead: '每段对话的每个 token 都要在显存里保存它的键和值。这要占多少？能同时容纳多少用户？',
  settings: '模型与用户',
  model: '模型',
  context: '上下文',
  tokens: { other: '{count} 个 token' },
  users: '同时在线的用户',
  gpuMemory: '显存',
  kvFormat: 'KV 格式',
  weightFormat: '权重',
  sharing: '共享公共前缀',
  sharingHelp: '所有用户相同的系统提示词只保存一份，而不是每个用户一份。',
  sharedTokens: '共有的 token',
  results: '占用多少',
  perToken: '每个 token 的 KV',
  formula: '2 × {numLayers} 层 × {kvHeads} 个 KV 头 × {headDim} 个值，{kv}',
  slidingNote: '其中 {layers} 层只保留最后 {window} 个 token',
  perUser: '每个用户的 KV',
  allUsers: { other: '{count} 个用户的 KV' },
  spared: '共享省下 {bytes}',
  weights: '权重',
  fits: '能容纳的用户',
  fitsNote: '{bytes} 显存，除去权重',
  sharedKv: '共享的 KV，只存一份',
  usersKv: '各用户的 KV',
  tooMuch: '超出这块 GPU {bytes}',
  growth: '{model} 的一个用户',
  growthLead: '都是直线：每个 token 增加的一样多。位数减半，斜率也减半。',
  growthPlot: '{model} 一个用户的 KV 内存随上下文长度的变化，四种格式',
  kvBytes: 'KV 内存',
  errors: '两个常见错误',
  claimWrong: '常见但错误的说法：',
  wrongSquare: '“KV 内存随上下文长度平方增长。”',
  rightSquare:
    '它是线性增长的：当前上下文为 {one}，两倍长就是 {two}。按平方增长的是对整个提示词做注意力的计算量，因为每个 token 都要看它之前的所有 token。',
  wrongQuant: '“只有权重能量化，KV 缓存不能。”',
  rightQuant:
    '可以量化：连同缩放系数，8 位（q8_0）约为 f16 的 53%，4 位（q4_0）约为 28%。回答会略有变化，所以引擎让用户自己选。Pagewise 本身存 f16 和 f32。',
  spoken: '上下文为 {context} 个 token 时，能容纳 {users} 个用户。',
};
