/** The package's version, as in its package.json: a page and a worker have to be of the same. */
export const VERSION = '0.1.0';
