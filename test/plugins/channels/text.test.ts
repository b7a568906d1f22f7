import { describe, expect, it, vi } from 'vitest'
import type { Dialect } from '../../../adapters/channels/contract.ts'
import { renderMessages } from '../../../plugins/channels/text/index.ts'
import { lengthOf } from '../../../plugins/channels/text/length.ts'

const dialects = [
  'plain',
  'markdown',
  'discord',
  'telegram-html',
  'matrix-html',
  'slack',
  'whatsapp',
  'xmpp',
  'irc',
  'email-html',
] as const satisfies readonly Dialect[]
const sample = `# Title with \`code\`

A **bold _and italic_** word, ~~gone~~, \`a*b\` and [a link](https://example.org/a_(b)?x=1&y=2).
2 * 3 < 4 & snake_case

> quoted
> **twice**

1. one
2. two
   - inner
   - more

- [x] done

| a | b |
|---|---|
| 1 | **22** |

\`\`\`ts
const x = a < b && "\`"
\`\`\`

<b>raw</b> [bad](javascript:alert(1)) @everyone https://example.org/a_b`

const all = (text: string, dialect: Dialect, maxLength = 100_000): readonly string[] =>
  renderMessages(text, { dialect, maxLength, lengthUnit: 'utf16' }).map((message) => message.text)
const one = (text: string, dialect: Dialect): string => all(text, dialect).join('⏎')

describe('a Markdown text in each dialect', () => {
  it.each(dialects)('%s', async (dialect) => {
    await expect(one(sample, dialect)).toMatchFileSnapshot(`__snapshots__/text/${dialect}.txt`)
  })

  it('has a plain form beside it', () => {
    const [message] = renderMessages('**a** [b](https://c.example)', {
      dialect: 'telegram-html',
      maxLength: 100,
      lengthUnit: 'utf16',
    })
    expect(message).toEqual({
      text: '<b>a</b> <a href="https://c.example">b</a>',
      plainText: 'a b (https://c.example)',
    })
  })

  it.each([
    ['telegram-html', 'a &lt;b&gt;&quot;x&quot; &amp;amp;'],
    ['matrix-html', '<p>a &lt;b&gt;&quot;x&quot; &amp;amp;</p>'],
    ['slack', 'a &lt;b&gt;"x" &amp;amp;'],
  ] as const)('escapes what the dialect would read as markup: %s', (dialect, expected) => {
    expect(one('a <b>"x" &amp;amp;', dialect)).toBe(expected)
  })

  it.each([
    ['javascript:alert(1)', 'x'],
    ['data:text/html,x', 'x'],
    ['https://a.example/?q="&b', '<a href="https://a.example/?q=&quot;&amp;b">x</a>'],
  ])('links only to web and mail addresses: %s', (href, expected) => {
    expect(one(`[x](<${href}>)`, 'telegram-html')).toBe(expected)
  })

  it.each(['discord', 'slack', 'markdown'] as const)('notifies nobody by accident: %s', (dialect) => {
    expect(one('@everyone @here @channel @all', dialect)).not.toMatch(/@(everyone|here|channel|all)/)
    const inPieces = String.raw`\@all @[all](x) @al[l](x) @[every](x)[one](y) \@**here**`
    expect(one(inPieces, dialect)).not.toMatch(/@(everyone|here|channel|all)/)
  })

  it('leaves out what a model thought', () => {
    expect(one('<think>\nsecret **plan**\n</think>\n\nHello', 'plain')).toBe('Hello')
    expect(all('<think>not yet done', 'plain')).toEqual([])
  })

  it.each(['', '  \n\n ', '\n'])('is empty for a blank text: %j', (text) => {
    expect(all(text, 'telegram-html')).toEqual([])
  })

  it('shows as written what would take too long to read', () => {
    const paragraph = '**a** '.repeat(500).trim()
    expect(all(`${paragraph}\n\n**b**`, 'telegram-html').join()).toBe(`${paragraph}\n\n<b>b</b>`)
    const columns = `|${'a|'.repeat(60)}\n|${'-|'.repeat(60)}\n|${'b|'.repeat(60)}`
    expect(all(columns, 'plain').join()).toBe(columns)
    expect(all(`**a** ${'x '.repeat(40_000)}`, 'plain').join('')).toContain('**a**')
    // The text stays, the marks beyond the limit do not.
    expect(
      all(`${'**a _b '.repeat(40)}${'_ **'.repeat(40)}`, 'telegram-html')
        .join()
        .match(/<b>/g)?.length ?? 0,
    ).toBeLessThan(40)
  })

  it('takes time for the length of a text, whatever it holds', () => {
    // Characters that the segmenter of characters reads, for a word that fills many messages.
    const readBy = (length: number): number => {
      const segment = vi.spyOn(Intl.Segmenter.prototype, 'segment')
      const limit = { maxLength: 300, lengthUnit: 'graphemes' } as const
      const messages = renderMessages('é'.normalize('NFD').repeat(length / 2), { dialect: 'markdown', ...limit })
      const read = segment.mock.calls.reduce((sum, [text]) => sum + text.length, 0)
      segment.mockRestore()
      expect(messages.map(({ text }) => text.length)).toEqual(Array.from({ length: length / 600 }, () => 600))
      return read
    }
    expect(readBy(12_000)).toBeLessThan(12_000 * 8)
    // The lexer searches the rest of a paragraph for the end of each emphasis.
    const paragraph = '_*a'.repeat(800)
    expect(all(`${paragraph}\n\n**b**`, 'telegram-html').join()).toBe(`${paragraph}\n\n<b>b</b>`)
  })

  it('shows what is nested too deeply as it was written, in no time', () => {
    const nested = Array.from({ length: 400 }, (_, depth) => `${'  '.repeat(depth)}- a`).join('\n')
    expect(all(nested, 'plain').join('\n').split('\n')).toHaveLength(400)
    expect(one('>'.repeat(50_000), 'telegram-html')).toContain('&gt;&gt;')
    expect(one('1. '.repeat(10_000) + 'a', 'plain')).toMatch(/^1\. 1\. /)
    expect(one('*'.repeat(8_000) + 'a' + '*'.repeat(8_000), 'plain')).toContain('a')
  })
})

/** How often an expression is matched while a text is rendered: what reading it costs, whatever the machine. */
function countMatches(text: string, maxFormattedChars: number): number {
  const exec = vi.spyOn(RegExp.prototype, 'exec')
  renderMessages(text, { dialect: 'plain', maxLength: 4000, lengthUnit: 'utf16' }, { maxFormattedChars })
  const { length } = exec.mock.calls
  exec.mockRestore()
  return length
}

describe('the work for a hostile text', () => {
  it.each(['- a\n', '> a\n\n', '1. a\n   1. b\n', '[*a](b **c `d ', '* * ', '|a|b|\n', '[a]: b\n', '`a``b'])(
    'grows with its length up to format_chars, and not beyond: %j',
    (piece) => {
      const fill = (length: number): string => piece.repeat(length / piece.length)
      const matches = countMatches(fill(4_000), 4_000)
      expect(matches).toBeLessThan(4_000 * 40)
      expect(matches).toBeLessThan(3 * countMatches(fill(2_000), 4_000) + 1_000)
      // Beyond it only words are counted, for the limit of a message.
      expect(countMatches(fill(8_000), 4_000)).toBeLessThan(8_000 * 1.6)
    },
  )
})

describe('a text beyond the limit', () => {
  it('is cut between blocks first, then lines, sentences, words', () => {
    const cuts = (text: string): readonly string[] => all(text, 'plain', 20)
    expect(cuts('first part.\n\nsecond part here')).toEqual(['first part.', 'second part here'])
    expect(cuts('one line here\nanother line')).toEqual(['one line here', 'another line'])
    expect(cuts('One sentence. And one more here')).toEqual(['One sentence.', 'And one more here'])
    expect(cuts('aaaa bbbb cccc dddd eeee')).toEqual(['aaaa bbbb cccc dddd', 'eeee'])
    expect(cuts('x'.repeat(45))).toEqual(['x'.repeat(20), 'x'.repeat(20), 'x'.repeat(5)])
  })

  it('closes and opens again what is open at the cut', () => {
    expect(all('**aaaa bbbb cccc**', 'telegram-html', 16)).toEqual(['<b>aaaa bbbb</b>', '<b>cccc</b>'])
    expect(all('```js\n  one()\n  two()\n```', 'discord', 22)).toEqual(['```js\n  one()\n```', '```js\n  two()\n```'])
    expect(all('> aaaa bbbb cccc', 'slack', 12)).toEqual(['> aaaa bbbb', '> cccc'])
    expect(all('- aaaa bbbb cccc', 'plain', 12)).toEqual(['• aaaa bbbb', '  cccc'])
  })

  it('is never cut inside of what a reader sees as one character', () => {
    const family = '👩‍👩‍👧‍👦'
    for (const text of all(family.repeat(10), 'plain', 30)) expect(text.replaceAll(family, '')).toBe('')
  })

  it.each([
    ['utf16', '😀'.repeat(10), 10, 2],
    ['characters', '😀'.repeat(10), 10, 1],
    ['graphemes', '👩‍👩‍👧'.repeat(10), 10, 1],
    ['bytes', 'ü'.repeat(10), 10, 2],
  ] as const)('is measured in %s', (lengthUnit, text, maxLength, count) => {
    expect(renderMessages(text, { dialect: 'plain', maxLength, lengthUnit })).toHaveLength(count)
  })

  it.each(dialects)('fits and loses nothing, whatever it holds: %s', (dialect) => {
    const random = generator(7)
    for (let round = 0; round < 60; round++) {
      const text = randomMarkdown(random)
      const messages = renderMessages(text, { dialect, maxLength: 120, lengthUnit: 'utf16' })
      for (const message of messages) {
        expect(lengthOf(message.text, 'utf16')).toBeLessThanOrEqual(120)
        if (dialect.endsWith('html')) expect(unbalanced(message.text), message.text).toBe('')
        else expect((message.text.match(/^[> ]*```/gm) ?? []).length % 2, message.text).toBe(0)
      }
      const words = messages
        .map(({ plainText }) => plainText)
        .join('')
        .match(/w\d+/g)
      expect(words).toEqual(text.match(/w\d+/g))
    }
  })
})

/** The tags of a text that are not closed in the right order. */
function unbalanced(html: string): string {
  const open: string[] = []
  for (const [, closing, name = ''] of html.matchAll(/<(\/?)(\w+)[^>]*>/g)) {
    if (name === 'br') continue
    if (closing === '') open.push(name)
    else if (open.pop() !== name) return `</${name}>`
  }
  return open.join()
}

function generator(seed: number): () => number {
  let state = seed
  return () => (state = (state * 1103515245 + 12345) & 0x7fffffff) / 0x7fffffff
}

function randomMarkdown(random: () => number): string {
  let count = 0
  const pick = <T>(values: readonly T[]): T => values[Math.floor(random() * values.length)] as T
  const words = (): string =>
    Array.from({ length: 1 + Math.floor(random() * 12) }, () => {
      const word = `w${count++}x`
      return pick([word, word, `**${word}**`, `_${word}_`, `\`${word}\``, `[${word}](https://e.example)`, `${word}<&>`])
    }).join(' ')
  const block = (): string =>
    pick([
      () => words(),
      () => `## ${words()}`,
      () => `> ${words()}\n> ${words()}`,
      () => `- ${words()}\n- ${words()}\n  1. ${words()}`,
      () => `\`\`\`\nw${count++}x  <b>\n  w${count++}x\n\`\`\``,
      () => `| a | b |\n|---|---|\n| w${count++}x | w${count++}x |`,
    ])()
  return Array.from({ length: 1 + Math.floor(random() * 5) }, block).join('\n\n')
}
