import { htmlToText } from 'svc/channels'
import { expect, it } from 'vitest'

it.each([
  ['<p>one</p><p>two<br>three</p>', 'one\n\ntwo\nthree'],
  ['a &lt;b&gt; &amp; &#65; &#x42; &nbsp;&unknown; &#0;', 'a <b> & A B  &unknown; &#0;'],
  ['<style>p { color: red }</style>shown<!-- <p>not</p> --><script>not', 'shown'],
  ['  many\n\n spaces ', 'many spaces'],
  ['cut <b', 'cut'],
  ['İİ<script>hidden</script><p>one</p>two', 'İİ\none\ntwo'],
])('shows %j as a reader sees it', (html, text) => {
  expect(htmlToText(html)).toBe(text)
})

it.each(['<p', '<', '&lt;', '<!--', '<script>', '&#32;', ' <b>', '&#10;'])(
  'reads ten megabytes of %s without holding up the daemon',
  (piece) => {
    const start = process.cpuUsage()
    htmlToText(piece.repeat(10_000_000 / piece.length))
    expect(process.cpuUsage(start).user / 1000).toBeLessThan(3000)
  },
)
