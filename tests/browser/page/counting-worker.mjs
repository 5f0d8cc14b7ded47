// The package's worker, with its GPU buffers counted.
import './count-buffers.mjs';
import '/js/dist/worker.js';
