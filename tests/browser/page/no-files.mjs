// As in browsers that have no file system of their own for pages.
delete StorageManager.prototype.getDirectory;
