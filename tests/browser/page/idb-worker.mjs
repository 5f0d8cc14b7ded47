// The package's worker where models can be stored in IndexedDB only.
import './no-files.mjs';
import '/js/dist/worker.js';
