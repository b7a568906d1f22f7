import { expect, it } from 'vitest'
import { secondsOf } from '../../../plugins/media/duration.ts'
import { mediaTypeOf } from '../../../core/files/media-type.ts'

/** Mono, 16 bits, 16,000 samples a second. */
function wav(seconds: number, said = seconds): Buffer {
  const header = Buffer.alloc(44)
  header.write('RIFF', 0)
  header.writeUInt32LE(36 + said * 32_000, 4)
  header.write('WAVEfmt ', 8)
  header.writeUInt32LE(16, 16)
  header.writeUInt16LE(1, 20)
  header.writeUInt16LE(1, 22)
  header.writeUInt32LE(16_000, 24)
  header.writeUInt32LE(32_000, 28)
  header.writeUInt16LE(2, 32)
  header.writeUInt16LE(16, 34)
  header.write('data', 36)
  header.writeUInt32LE(said * 32_000, 40)
  return Buffer.concat([header, Buffer.alloc(seconds * 32_000)])
}
/** Frames of 417 bytes with 1,152 samples at 44,100 a second. */
function mp3(frames: number): Buffer {
  const frame = Buffer.alloc(417)
  frame.set([0xff, 0xfb, 0x90, 0x64])
  return Buffer.concat(Array.from({ length: frames }, () => frame))
}
function oggPage(type: number, granule: number, sequence: number, content: Buffer): Buffer {
  const header = Buffer.alloc(28)
  header.write('OggS', 0)
  header[5] = type
  header.writeBigUInt64LE(BigInt(granule), 6)
  header.writeUInt32LE(1, 14)
  header.writeUInt32LE(sequence, 18)
  header[26] = 1
  header[27] = content.length
  return Buffer.concat([header, content])
}
/** Opus counts 48,000 samples a second. */
function opus(seconds: number): Buffer {
  const head = Buffer.alloc(19)
  head.write('OpusHead', 0)
  head[8] = 1
  head[9] = 1
  head.writeUInt32LE(48_000, 12)
  const tags = Buffer.alloc(16)
  tags.write('OpusTags', 0)
  return Buffer.concat([
    oggPage(2, 0, 0, head),
    oggPage(0, 0, 1, tags),
    oggPage(0, (seconds * 48_000) / 2, 2, Buffer.alloc(200)),
    oggPage(4, seconds * 48_000, 3, Buffer.alloc(200)),
    // What vendors accept is no larger than this for so long a time.
    Buffer.alloc(seconds * 1_000 + 3_000),
  ])
}

it.each([
  ['WAV', wav(3), 4],
  ['MP3', mp3(200), 7],
  ['Ogg', opus(3), 4],
])('%s tells how long it is, and a second is added', async (_, audio, seconds) => {
  expect(await secondsOf(audio, await mediaTypeOf(audio))).toBe(seconds)
})

it.each([
  ['that says it is shorter than its bytes can be', wav(30, 0.25), 961],
  ['whose frames are damaged', Buffer.concat([mp3(1), Buffer.alloc(20_000, 7)]), 21],
])('a recording %s is as long as its bytes allow', async (_, audio, seconds) => {
  expect(await secondsOf(audio, await mediaTypeOf(audio))).toBe(seconds)
})

it('a video and what only claims to be sound are as long as their bytes allow', async () => {
  expect(await secondsOf(wav(3), 'video/mp4')).toBe(97)
  expect(await secondsOf(Buffer.alloc(5_000), 'audio/ogg; codecs=opus')).toBe(5)
})
