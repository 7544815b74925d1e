const valueTypes = { uint32: 4, int32: 5, float32: 6, bool: 7, text: 8, array: 9 } as const;
const alignment = 32;
const float32Tensor = 0;

/** Puts a GGUF file (version 3) together: values first, then tensors, all of 32-bit floats. */
export class GgufWriter {
  readonly #values: Buffer[] = [];
  readonly #tensors: { name: string; dimensions: readonly number[]; data: Buffer }[] = [];

  text(key: string, value: string): void {
    this.#value(key, valueTypes.text, textBytes(value));
  }

  number(key: string, value: number): void {
    this.#value(key, valueTypes.uint32, uint32(value));
  }

  float(key: string, value: number): void {
    this.#value(key, valueTypes.float32, bytesOf(Float32Array.of(value)));
  }

  flag(key: string, value: boolean): void {
    this.#value(key, valueTypes.bool, Buffer.of(value ? 1 : 0));
  }

  texts(key: string, values: readonly string[]): void {
    this.#array(key, valueTypes.text, values.length, Buffer.concat(values.map(textBytes)));
  }

  floats(key: string, values: Float32Array): void {
    this.#array(key, valueTypes.float32, values.length, bytesOf(values));
  }

  integers(key: string, values: Int32Array): void {
    this.#array(key, valueTypes.int32, values.length, bytesOf(values));
  }

  /** Dimensions begin with the one whose numbers lie side by side. */
  tensor(name: string, dimensions: readonly number[], numbers: Float32Array): void {
    this.#tensors.push({ name, dimensions, data: padded(bytesOf(numbers)) });
  }

  bytes(): Buffer {
    let offset = 0;
    const infos = this.#tensors.map(({ name, dimensions, data }) => {
      const shape = [uint32(dimensions.length), ...dimensions.map(uint64)];
      const info = Buffer.concat([textBytes(name), ...shape, uint32(float32Tensor), uint64(offset)]);
      offset += data.length;
      return info;
    });
    const head = [Buffer.from("GGUF"), uint32(3), uint64(this.#tensors.length), uint64(this.#values.length)];
    const described = padded(Buffer.concat([...head, ...this.#values, ...infos]));
    return Buffer.concat([described, ...this.#tensors.map(({ data }) => data)]);
  }

  #value(key: string, type: number, value: Buffer): void {
    this.#values.push(Buffer.concat([textBytes(key), uint32(type), value]));
  }

  #array(key: string, type: number, count: number, values: Buffer): void {
    this.#value(key, valueTypes.array, Buffer.concat([uint32(type), uint64(count), values]));
  }
}

function textBytes(text: string): Buffer {
  const bytes = Buffer.from(text);
  return Buffer.concat([uint64(bytes.length), bytes]);
}

function uint32(value: number): Buffer {
  const bytes = Buffer.alloc(4);
  bytes.writeUInt32LE(value);
  return bytes;
}

function uint64(value: number): Buffer {
  const bytes = Buffer.alloc(8);
  bytes.writeBigUInt64LE(BigInt(value));
  return bytes;
}

function bytesOf(numbers: Float32Array | Int32Array): Buffer {
  return Buffer.from(numbers.buffer, numbers.byteOffset, numbers.byteLength);
}

function padded(bytes: Buffer): Buffer {
  return Buffer.concat([bytes, Buffer.alloc((alignment - (bytes.length % alignment)) % alignment)]);
}
