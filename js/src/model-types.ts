/**
 * The public types of stored models.
 */

import type { SourceOptions } from './types.js';

/** A model in the browser's storage. */
export interface StoredModel {
  /** Registry id, else the file's name without `.gguf`. */
  id: string;
  /** What the registry calls it, else {@link id}. */
  name: string;
  /** The address of each part. */
  urls: string[];
  /** Bytes of all parts; 0 until the server has told. */
  bytes: number;
  /** Bytes that are there. */
  storedBytes: number;
  /** Whether all of it is there and was checked. */
  isComplete: boolean;
  /** SHA-256 of each part in hexadecimal; empty until it is complete. */
  sha256: string[];
}

/** One report of {@link DownloadOptions.onProgress}. */
export interface DownloadProgress {
  /** Bytes that are there, those of an earlier download included. */
  loadedBytes: number;
  /** Bytes in all. */
  totalBytes: number;
}

/** Options of `Engine.models.download`. */
export interface DownloadOptions extends SourceOptions {
  /** Called with the progress; the last call has all bytes. */
  onProgress?: ((progress: DownloadProgress) => void) | undefined;
  /** The file's SHA-256 in hexadecimal, one for each part of a split file. Default: the registry's, for an id. */
  sha256?: string | readonly string[];
}
