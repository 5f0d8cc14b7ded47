// Says with every answer of the worker that imports this how many bytes of GPU buffers there are.
const sizes = new Map();
const deviceOf = new WeakMap();
const { createBuffer } = GPUDevice.prototype;
GPUDevice.prototype.createBuffer = function (descriptor) {
  const buffer = createBuffer.call(this, descriptor);
  sizes.set(buffer, descriptor.size);
  deviceOf.set(buffer, this);
  return buffer;
};
// The end of a device is that of its buffers.
const { destroy: destroyDevice } = GPUDevice.prototype;
GPUDevice.prototype.destroy = function () {
  for (const buffer of [...sizes.keys()]) if (deviceOf.get(buffer) === this) sizes.delete(buffer);
  return destroyDevice.call(this);
};
const { destroy } = GPUBuffer.prototype;
GPUBuffer.prototype.destroy = function () {
  sizes.delete(this);
  return destroy.call(this);
};
const channel = new BroadcastChannel('gpu-bytes');
const post = globalThis.postMessage.bind(globalThis);
globalThis.postMessage = (message, transfer) => {
  if (message.type === 'result') {
    channel.postMessage({ numBuffers: sizes.size, bytes: [...sizes.values()].reduce((sum, size) => sum + size, 0) });
  }
  post(message, transfer);
};
