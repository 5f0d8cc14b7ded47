'use client';

import { Engine, kvMemory } from 'pagewise';
import { useEffect, useState } from 'react';

export default function Page() {
  const [model, setModel] = useState('loading');
  useEffect(() => {
    const controller = new AbortController();
    const options = { contextLength: 64, autotune: false, share: true, signal: controller.signal };
    Engine.load('/models/tiny-llama-f16.gguf', options).then((engine) => {
      Object.assign(globalThis, { Engine, engine, kvMemory });
      setModel(engine.info.id);
    }, console.error);
    return () => controller.abort();
  }, []);
  return <p>{model}</p>;
}
