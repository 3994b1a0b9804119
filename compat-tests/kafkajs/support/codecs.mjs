/** Registers with kafkajs the codecs that it does not bring; it has gzip only. */
import kafkajs from 'kafkajs';
import snappy from 'kafkajs-snappy';
import lz4 from 'lz4-napi';
import zstd from 'zstd-codec';

const { CompressionCodecs, CompressionTypes } = kafkajs;

function zstdSimple() {
  return new Promise((resolve) => zstd.ZstdCodec.run((binding) => resolve(new binding.Simple())));
}

export async function registerCodecs() {
  const simple = await zstdSimple();
  CompressionCodecs[CompressionTypes.Snappy] = snappy;
  CompressionCodecs[CompressionTypes.LZ4] = () => ({
    compress: (encoder) => lz4.compressFrame(encoder.buffer),
    decompress: (buffer) => lz4.decompressFrame(buffer),
  });
  CompressionCodecs[CompressionTypes.ZSTD] = () => ({
    compress: async (encoder) => Buffer.from(simple.compress(encoder.buffer)),
    decompress: async (buffer) => Buffer.from(simple.decompress(buffer)),
  });
}
