import { describe, expect, it } from 'vitest'
import { toMarkdown } from '../../../plugins/web/markdown.ts'

const md = (html: string): string => toMarkdown(html, 'https://example.test/a/b').text

it.each<[string, string, string]>([
  ['headings and paragraphs', '<h1>One  <em>two</em></h1><p>a\n b</p><p>c</p>', '# One *two*\n\na b\n\nc'],
  [
    'links, made absolute',
    '<a href="../x?q=1&amp;r=2">the <b>link</b></a>, <a href="#top">top</a>',
    '[the **link**](https://example.test/x?q=1&r=2), top',
  ],
  ['no link that is a script or data', '<a href="javascript:alert(1)">a</a> <a href="data:text/html,x">b</a>', 'a b'],
  [
    'lists in lists',
    '<ul><li>a<ol><li>b<li>c</ol></li><li>d</li></ul>',
    '- a\n  1. b\n  2. c\n\n- d'.replace('\n\n- d', '\n- d'),
  ],
  [
    'code as it is',
    '<pre><code>if (a &lt; b) {\n  x\n}</code></pre><p><code>y</code></p>',
    '```\nif (a < b) {\n  x\n}\n```\n\n`y`',
  ],
  ['quotes', '<p>a</p><blockquote>b<p>c</p></blockquote><p>d</p>', 'a\n\n> b\n>\n> c\n\nd'],
  ['tables', '<table><tr><th>a</th><th>b</th></tr><tr><td>1</td><td>2</td></tr></table>', 'a | b\n1 | 2'],
  ['images by their text', '<img src=x alt="a cat"><img src=y>', '[image: a cat]'],
  [
    'nothing of scripts, styles and comments',
    'a<script>var x = "<p>no</p>"</script><STYLE>p{}</STYLE><!-- no <p> --><noscript>no</noscript>b',
    'ab',
  ],
  ['signs that are no tags', '1 < 2 && 3 > 2 <3', '1 < 2 && 3 > 2 <3'],
  ['character references', '&lt;&#65;&#x42;&nope;&euro;&#0;&#xD800;', '<AB&nope;€'],
])('%s', (_what, html, text) => {
  expect(md(html)).toBe(text)
})

it('the title is told apart, and the main part is enough when there is one', () => {
  const page = toMarkdown(
    `<title>A &amp; B</title><nav>menu</nav><main>${'<p>word</p>'.repeat(60)}</main><footer>foot</footer>`,
    'https://example.test',
  )
  expect(page.title).toBe('A & B')
  expect(page.text).not.toMatch(/menu|foot/)
})

describe('a hostile page costs no more than its length', () => {
  it.each([
    ['paragraphs', '<p>hello <b>world</b></p>'.repeat(40_000)],
    ['open tags', '<div>'.repeat(200_000)],
    ['open quotes', '<a x="'.repeat(150_000)],
    ['quotes that cross', `<a '>"`.repeat(150_000)],
    ['signs', '<'.repeat(1_000_000)],
    ['comments', '<!--'.repeat(200_000)],
    ['ampersands', '&#'.repeat(500_000)],
    ['spaces', `<pre>${' '.repeat(500_000)}x</pre>`],
    ['scripts', '<script>'.repeat(100_000)],
    ['lists', '<ul><li>'.repeat(50_000)],
    ['attributes', `<a ${'b'.repeat(40)} >`.repeat(30_000)],
  ])('%s', (_what, html) => {
    expect(typeof md(html)).toBe('string')
  })
})
