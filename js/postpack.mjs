import { takeDocuments } from './pack-documents.mjs';

takeDocuments();
