import { generateText } from 'ai';
import { Engine, kvMemory } from 'pagewise';
import { createPagewise } from 'pagewise/ai-sdk';
import { createLanguageModel } from 'pagewise/prompt-api';

Object.assign(globalThis, { bridges: { createLanguageModel, createPagewise, generateText }, Engine, kvMemory });
globalThis.engine = await Engine.load('/models/tiny-llama-f16.gguf', { contextLength: 64, autotune: false });
