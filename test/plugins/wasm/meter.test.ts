import { describe, expect, it } from 'vitest'
import { ModuleProblem } from '../../../plugins/wasm/bytes.ts'
import { FUEL, meter } from '../../../plugins/wasm/meter.ts'
import { body, constant, echo, guest, leb, list, section, text } from './assemble.ts'
import type { Parts } from './assemble.ts'

const limits = { memoryPages: 256, moduleBytes: 4_194_304 }
const refused = (module: Uint8Array): string | undefined => {
  try {
    meter(module, limits)
  } catch (error) {
    if (error instanceof ModuleProblem) return error.message
    throw error
  }
  return undefined
}
const why = (parts: Parts): string | undefined => refused(guest(parts))

describe('a module that is metered', () => {
  it('is one that the engine takes, with the counter among its exports', async () => {
    const compiled = await WebAssembly.compile(meter(guest(), limits) as Uint8Array<ArrayBuffer>)
    expect(WebAssembly.Module.exports(compiled).map(({ name }) => name)).toEqual([
      'memory',
      'alloc',
      'execute',
      FUEL,
      '\0refused',
    ])
  })

  it('loses what is no code: names and notes of compilers', () => {
    const plain = meter(guest(), limits)
    expect(meter(Uint8Array.from([...guest(), ...section(0, [...text('name'), 1, 2, 3])]), limits)).toEqual(plain)
  })

  it('has the memory it may have at most, whatever it says', async () => {
    for (const memory of [
      [0, 1],
      [1, 1, ...leb(65_536)],
    ]) {
      const { instance } = await WebAssembly.instantiate(meter(guest({ memory }), limits) as Uint8Array<ArrayBuffer>)
      const { memory: made } = instance.exports
      if (!(made instanceof WebAssembly.Memory)) throw new Error('no memory')
      expect(() => made.grow(256)).toThrow(RangeError)
      expect(made.grow(255)).toBe(1)
    }
  })

  it('keeps what it does with floats, globals, tables, segments of data and several results', async () => {
    const module = guest({
      sections: {
        4: list([[0x70, 0, 2]]),
        6: list([
          [0x7f, 1, ...constant(5), 0x0b],
          [0x7c, 0, 0x44, 0, 0, 0, 0, 0, 0, 0xf0, 0x3f, 0x0b],
        ]),
        9: list([[0, ...constant(0), 0x0b, ...list([[0], [0]])]]),
        12: [1],
        11: list([[0, ...constant(16), 0x0b, ...text('abc')]]),
      },
      execute: [
        ...constant(7),
        ...constant(0),
        0x11,
        0,
        0,
        0x23,
        0,
        0x6a,
        0x44,
        0,
        0,
        0,
        0,
        0,
        0,
        0,
        0x40,
        0x23,
        1,
        0xa0,
        0xaa,
        0x6a,
        ...constant(16),
        0x2d,
        0,
        0,
        0x6a,
        0xad,
      ],
    })
    const { instance } = await WebAssembly.instantiate(meter(module, limits) as Uint8Array<ArrayBuffer>)
    const { execute } = instance.exports
    const counter = instance.exports[FUEL]
    if (typeof execute !== 'function' || !(counter instanceof WebAssembly.Global)) throw new Error('no exports')
    counter.value = 1000n
    // 1024 from the table, 5, 3 as a float, and the letter a.
    expect(execute(0, 0)).toBe(1024n + 5n + 3n + 97n)
    expect(counter.value).toBe(1000n - 15n)
  })
})

describe('a module that is not taken', () => {
  it.each<[string, Parts]>([
    ['0xfd', { execute: [0xfd, 0x0c, ...Array<number>(16).fill(0), 0x1a, ...echo] }],
    ['0xfe', { execute: [0xfe, 0x03, 0, ...echo] }],
    ['0x12', { execute: [0x12, 0] }],
    ['0x6 ', { execute: [0x06, 0x40, 0x0b] }],
    ['0xfc 18', { execute: [0xfc, 18] }],
    ['no function 2', { execute: [0x10, 2, ...echo] }],
    ['no function 4', { execute: [0xd2, 4, 0x1a, ...echo] }],
    ['no global 0', { execute: [0x23, 0, 0x1a, ...echo] }],
    ['no global 0', { execute: [0x42, 0, 0x24, 0, ...echo] }],
    ['no function 2', { sections: { 4: list([[0x70, 0, 1]]), 9: list([[0, ...constant(0), 0x0b, ...list([[2]])]]) } }],
    ['no such thing to export 2', { exports: [[...text('x'), 0, 2]] }],
    ['no such thing to export 0', { exports: [[...text('x'), 3, 0]] }],
    ['begins with a zero', { exports: [[...text('\0fuel'), 2, 0]] }],
    ['functions of "svc"', { imports: [[...text('env'), ...text('f'), 0, 0]] }],
    ['functions of "svc"', { imports: [[...text('svc'), ...text('m'), 2, 0, 1]] }],
    ['functions of "svc"', { imports: [[...text('wasi_snapshot_preview1'), ...text('fd_write'), 0, 0]] }],
    ['start section', { sections: { 8: [0] } }],
    ['section 13', { sections: { 13: [0] } }],
    ['shared and 64-bit memory', { memory: [3, 1, 2] }],
    ['shared and 64-bit memory', { memory: [4, 1] }],
    [
      '2 memories',
      {
        sections: {
          5: list([
            [0, 1],
            [0, 1],
          ]),
        },
      },
    ],
    ['257 pages', { memory: [0, ...leb(257)] }],
    [
      '2 tables',
      {
        sections: {
          4: list([
            [0x70, 0, 1],
            [0x70, 0, 1],
          ]),
        },
      },
    ],
    ['10001 entries', { sections: { 4: list([[0x70, 0, ...leb(10_001)]]) } }],
    ['holds functions', { sections: { 4: list([[0x6f, 0, 1]]) } }],
    [
      'constant',
      {
        sections: {
          6: list([
            [0x7f, 0, ...constant(1), 0x0b],
            [0x7f, 0, 0x23, 0, 0x0b],
          ]),
        },
      },
    ],
    ['type 0x7b', { sections: { 6: list([[0x7b, 0, ...constant(1), 0x0b]]) } }],
    ['type of a block|type that is none', { execute: [0x02, 4, 0x0b, ...echo] }],
    ['type that is none', { execute: [0x02, 0x6f, 0x0b, ...echo] }],
    ['alignment', { execute: [...constant(0), 0x28, 0x42, 0, 0, 0x1a, ...echo] }],
    ['one memory only', { execute: [0x3f, 1, 0x1a, ...echo] }],
    ['goes on behind its end', { execute: [...echo, 0x0b, 0x01] }],
    ['ends too early', { execute: [...echo, 0x02, 0x40] }],
    ['nested deeper', { execute: Array.from({ length: 1001 }, () => [0x02, 0x40]).flat() }],
    ['no data segment 0', { execute: [...constant(0), ...constant(0), ...constant(0), 0xfc, 8, 0, 0, ...echo] }],
    ['announced', { sections: { 12: [1] } }],
    ['bodies', { sections: { 10: list([body(echo)]) } }],
    ['too long', { execute: [0x41, 0x80, 0x80, 0x80, 0x80, 0x80, 0x00, 0x1a, ...echo] }],
    ['too large', { execute: [0x41, 0xff, 0xff, 0xff, 0xff, 0x3f, 0x1a, ...echo] }],
    ['more than 50000', { locals: [[...leb(50_001), 0x7f]] }],
  ])('because of: %s', (message, parts) => {
    expect(why(parts)).toMatch(new RegExp(message.split('|').join('|')))
  })

  it('is one with too many functions, too many bytes, or another beginning', () => {
    expect(why({ more: Array.from({ length: 9_998 }, () => []) })).toBeUndefined()
    expect(why({ more: Array.from({ length: 9_999 }, () => []) })).toMatch('10001')
    expect(refused(new Uint8Array(4_194_305))).toMatch('at most 4194304')
    for (const bytes of [[], [0], [0, 0x61, 0x73, 0x6d, 2, 0, 0, 0], [0x7f, 0x45, 0x4c, 0x46, 1, 0, 0, 0]])
      expect(refused(Uint8Array.from(bytes))).toBeDefined()
  })

  it('is one whose sections come twice or in another order', () => {
    const bytes = [...guest()]
    expect(refused(Uint8Array.from([...bytes, ...section(1, [0])]))).toMatch('wrong place')
    expect(refused(Uint8Array.from([...bytes, ...section(10, [0])]))).toMatch('wrong place')
  })
})

describe('bytes that were changed', () => {
  /** The same at every run. */
  function numbers(seed: number): (below: number) => number {
    let state = seed
    return (below) => {
      state = (Math.imul(state, 1_664_525) + 1_013_904_223) >>> 0
      return state % below
    }
  }

  it('are refused or still count: three thousand times one or more bytes', () => {
    const next = numbers(7)
    const whole = [
      guest({
        execute: [0x03, 0x40, 0x20, 1, 0x0d, 0, 0x0b, ...echo],
        more: [
          [0x10, 2],
          [0x02, 0x40, 0x0c, 0, 0x0b],
        ],
      }),
      guest({
        sections: {
          4: list([[0x70, 0, 2]]),
          6: list([[0x7f, 1, ...constant(5), 0x0b]]),
          9: list([[0, ...constant(0), 0x0b, ...list([[0], [1]])]]),
          12: [1],
          11: list([[0, ...constant(16), 0x0b, ...text('abc')]]),
        },
      }),
    ]
    let taken = 0
    for (let round = 0; round < 3000; round++) {
      const bytes = Uint8Array.from(whole[round % 2] ?? [])
      for (let change = next(2); change >= 0; change--) bytes[next(bytes.length)] = next(256)
      const cut = next(10) === 0 ? bytes.subarray(0, next(bytes.length)) : bytes
      let out: Uint8Array
      try {
        out = meter(cut, limits)
      } catch (error) {
        expect(error).toBeInstanceOf(ModuleProblem)
        continue
      }
      taken++
      // What the engine takes of it has the counter, and reads as it was written.
      if (WebAssembly.validate(out as Uint8Array<ArrayBuffer>))
        expect(
          WebAssembly.Module.exports(new WebAssembly.Module(out as Uint8Array<ArrayBuffer>)).some(
            ({ name }) => name === FUEL,
          ),
        ).toBe(true)
    }
    expect(taken).toBeGreaterThan(100)
  })
})
