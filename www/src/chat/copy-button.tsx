/** Puts a text on the clipboard and says so for a moment. */
import type { JSX } from 'preact';
import { useState } from 'preact/hooks';
import { t as core } from '../i18n/core';
import { IconButton } from '../ui/kit';
import { copyText } from '../ui/kit/clipboard';

const SHOWN_MS = 1500;

export function CopyButton({ text, label }: { text: string; label: string }): JSX.Element {
  const [isCopied, setCopied] = useState(false);
  const copy = async (): Promise<void> => {
    if (!(await copyText(text))) return;
    setCopied(true);
    setTimeout(() => setCopied(false), SHOWN_MS);
  };
  return (
    <IconButton
      icon={isCopied ? 'check' : 'copy'}
      label={isCopied ? core('copied') : label}
      onClick={() => void copy()}
    />
  );
}
