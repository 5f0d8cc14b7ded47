/** Bytes to text: UTF-8, UTF-16 with its mark, and what older systems write, Chinese or Western. */
import { DocumentError } from './records';

/** Of older encodings: Chinese text is mostly bytes above 127, Western text hardly any. */
const CHINESE_SHARE = 0.3;

/** The text of a file; throws `not_text` for what is none. */
export function decodeText(bytes: Uint8Array): string {
  const encoding = encodingOf(bytes);
  try {
    const text = new TextDecoder(encoding, { fatal: true }).decode(bytes);
    if (hasControls(text)) throw new DocumentError('not_text');
    return text;
  } catch {
    throw new DocumentError('not_text');
  }
}

/** Whether there are control characters that are in no text: all but white space and escape. */
function hasControls(text: string): boolean {
  for (let at = 0; at < text.length; at += 1) {
    const code = text.charCodeAt(at);
    if (code < 32 && !(code >= 9 && code <= 13) && code !== 27) return true;
  }
  return false;
}

function encodingOf(bytes: Uint8Array): string {
  if (bytes[0] === 0xff && bytes[1] === 0xfe) return 'utf-16le';
  if (bytes[0] === 0xfe && bytes[1] === 0xff) return 'utf-16be';
  if (isUtf8(bytes)) return 'utf-8';
  const numHigh = bytes.reduce((sum, byte) => sum + (byte > 127 ? 1 : 0), 0);
  return numHigh / bytes.length >= CHINESE_SHARE ? 'gb18030' : 'windows-1252';
}

function isUtf8(bytes: Uint8Array): boolean {
  try {
    new TextDecoder('utf-8', { fatal: true }).decode(bytes);
    return true;
  } catch {
    return false;
  }
}
