import { describe, expect, it } from 'vitest'
import { MarkdownStream, renderMarkdown } from '../../../core/cli/terminal/markdown.ts'

const plain = (text: string, width = 80): string => renderMarkdown(text, { width, colored: false })
const stream = (pieces: readonly string[]): string => {
  const markdown = new MarkdownStream(() => ({ width: 60, colored: false }))
  let out = ''
  for (const piece of pieces) {
    markdown.add(piece)
    out += markdown.take()
    markdown.peek()
  }
  return out + markdown.end()
}

describe('what is still being written', () => {
  const text = '# Title\n\nSome **bold** words.\n\n- one\n- two\n\n```js\nlet a = 1\n```\n\nThe end.'
  it('stands below what is complete as it will stand in the end', () => {
    const markdown = new MarkdownStream(() => ({ width: 60, colored: false }))
    let complete = ''
    for (const [at, char] of [...text].entries()) {
      markdown.add(char)
      complete += markdown.take()
      expect(`${complete}${markdown.peek()}`.trimEnd()).toBe(plain(text.slice(0, at + 1), 60).trimEnd())
    }
  })
})

it('the next text begins without the empty line that stands between two blocks', () => {
  const markdown = new MarkdownStream(() => ({ width: 60, colored: false }))
  for (const text of ['one\n\ntwo', 'three']) {
    markdown.add(text)
    expect(markdown.end()).toBe(text === 'three' ? 'three\n' : 'one\n\ntwo\n')
  }
})

describe('Markdown in a terminal', () => {
  it.each([
    ['# A\ntext', '# A\n\ntext'],
    ['a **b** _c_ ~~d~~ `e`', 'a b c d `e`'],
    ['- a\n- b\n  - c\n  - d', '• a\n• b\n  • c\n  • d'],
    ['3. a\n4. b', '3. a\n4. b'],
    ['- [x] done\n- [ ] open', '• [x] done\n• [ ] open'],
    ['> a\n> b', '│ a\n│ b'],
    ['[text](http://a/?x=1&amp;y) <http://b/>', 'text (http://a/?x=1&y) http://b/'],
    ['![cat](c.png)', '[image: cat] (c.png)'],
    ['| a | b |\n|---|---|\n| 1 | 中文 |\n| x | y |', 'a  b\n─  ────\n1  中文\nx  y'],
    ['a &lt;b&gt; <i>c</i>', 'a <b> <i>c</i>'],
    ['\\*no\\* star', '*no* star'],
  ])('%j', (text, shown) => {
    expect(plain(text)).toBe(shown)
  })
  it('folds text and keeps lines of code; a table that is too wide is read row by row', () => {
    expect(plain('one two three four', 10)).toBe('one two\nthree four')
    expect(plain('- one two three', 10)).toBe('• one two\n  three')
    expect(plain('```\none two three\n```', 10)).toBe('    one two three')
    expect(plain('|name|value|\n|-|-|\n|long one|longer|', 14)).toBe('name: long one\nvalue: longer')
  })
  it.each(['\u001b[31m', '&#27;[31m', '&#x1b;[31m', '\u009b31m', '\u202e', '\u0007', '\r'])(
    'lets no control character out: %j',
    (bad) => {
      for (const text of [
        bad,
        `**${bad}**`,
        `\`${bad}\``,
        `[${bad}](${bad})`,
        `[a](<${bad}> "${bad}")`,
        `![${bad}](${bad})`,
        `# ${bad}`,
        `> ${bad}`,
        `- ${bad}`,
        `\`\`\`${bad}\n${bad}\n\`\`\``,
        `|${bad}|b|\n|-|-|\n|${bad}|c|`,
        `<a ${bad}>`,
        `\\${bad}`,
        `[a][b]\n\n[b]: http://x/${bad} "${bad}"`,
        `${'> '.repeat(30)}${bad}`,
        `${'>'.repeat(5000)}${bad}`,
      ]) {
        expect(plain(text)).not.toMatch(/(?!\n)\p{Cc}|\u202e/u)
        expect(stream([text])).not.toMatch(/(?!\n)\p{Cc}|\u202e/u)
      }
    },
  )
  it('says the same in pieces as at once', () => {
    const text =
      '# A\n\nSome *text* here.\nMore.\n\n1. one\n2. two\n\n   more of two\n\n```ts\nlet a\n\n\nlet b\n```\n> quote\n\nend'
    const whole = `${plain(text, 60)}\n`
    expect(stream([text])).toBe(whole)
    for (const size of [1, 2, 3, 7, 20]) expect(stream(text.match(new RegExp(`[^]{1,${size}}`, 'g')) ?? [])).toBe(whole)
  })
  it('a block without an end is given out on the way, nothing twice and nothing lost', () => {
    const lines = Array.from({ length: 3000 }, (_, at) => `line ${at} of it`)
    const pieces = (text: string): string[] => text.match(/[^]{1,997}/g) ?? []
    for (const text of [
      `\`\`\`\n${lines.join('\n')}`,
      lines.map((line) => `- ${line}`).join('\n'),
      lines.join('\n'),
      `> ${lines.join('\n> ')}`,
    ]) {
      const markdown = new MarkdownStream(() => ({ width: 60, colored: false }))
      let before = ''
      for (const piece of pieces(text)) {
        markdown.add(piece)
        before += markdown.take()
      }
      expect(before.length).toBeGreaterThan(20_000)
      expect((before + markdown.end()).match(/line \d+ of it/g)).toEqual(lines)
    }
  })
  it.each([
    ['>'.repeat(100_000)],
    ['1. '.repeat(30_000)],
    ['*a **b '.repeat(10_000)],
    ['['.repeat(100_000)],
    ['_a__b'.repeat(20_000)],
    ['a'.repeat(100_000)],
  ])('renders what is nested without an end: %#', (text) => {
    const shown = stream(text.match(/[^]{1,5000}/g) ?? [])
    expect(shown.length).toBeGreaterThan(10_000)
  })
})
