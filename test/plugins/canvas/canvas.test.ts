import { startPlugin } from 'svc/testing'
import type { PluginTest } from 'svc/testing'
import { afterAll, beforeAll, describe, expect, it, onTestFinished, vi } from 'vitest'
import { sandboxPolicy } from '../../../core/http/sandboxed-document.ts'
import { canvasText, sanitizeCanvas } from '../../../plugins/canvas/sanitize.ts'
import { PNG } from '../../support/fake-media.ts'
import type { Json } from '../../support/json.ts'
import { callTool, turnPlugins } from '../plugin-test.ts'
import { hostile } from './hostile.ts'

let test: PluginTest
let agent = ''
beforeAll(async () => {
  test = await startPlugin({
    plugin: new URL('../../../plugins/canvas/', import.meta.url),
    builtIns: turnPlugins,
    config: { plugins: { canvas: { max_html_bytes: 1000, kept_per_session: 2 } } },
  })
  agent = await test.spawn('artist')
})
afterAll(() => test[Symbol.asyncDispose]())
async function present(html: string, more = {}): Promise<string> {
  const { text, failed } = await test.callTool('canvas_present', { html, title: 'A <b>' }, { agentId: agent, ...more })
  if (failed) throw new Error(text)
  return /canvas ([0-9a-f-]{36})/.exec(text)?.[1] ?? ''
}
const read = (id: string) => test.request<Json>('GET', `/api/canvas/${id}`)

describe('what is left of HTML', () => {
  it.each(hostile('http://evil.example'))('loads and runs nothing: %s', (dirty) => {
    const clean = sanitizeCanvas(`<p>kept</p>${dirty}`)
    expect(clean).toContain('<p>kept</p>')
    expect(clean).not.toMatch(
      /evil\.example|<script|\son\w+\s*=|javascript:|<(?:iframe|object|embed|link|meta|base|form)/i,
    )
    expect(sanitizeCanvas(clean)).toBe(clean)
  })
  it.each([
    ['tags', '<b>'.repeat(170_000), 'has more than 10000 tags'],
    ['signs that open no tag', '<'.repeat(500_000), 'has more than 10000 tags'],
    ['attributes', `<b ${'a=1 '.repeat(60_000)}>`, 'a tag has more than 100 attributes'],
    ['attributes without blanks', `<b${'/a'.repeat(60_000)}>`, 'a tag has more than 100 attributes'],
  ])('is nothing where there are too many %s', (_what, html, error) => {
    expect(() => sanitizeCanvas(html)).toThrow(error)
  })
  it('is everything that is text, style, drawing and picture', () => {
    const kept = [
      '<h1 class="a" style="color:red;background:url(data:image/png;base64,AAAA)">T</h1>',
      '<style>@media (min-width:1px){.a{content:"\\201C"}}</style>',
      '<table><tr><td colspan="2">x</td></tr></table>',
      '<details open><summary>s</summary>d</details>',
      `<img src="data:image/png;base64,${PNG}" alt="dot" />`,
      '<svg viewbox="0 0 1 1"><defs><linearGradient id="g"></linearGradient></defs><path d="M0 0" fill="url(#g)"></path></svg>',
    ]
    for (const html of kept) expect(sanitizeCanvas(html).replace(/ open=""/, ' open')).toBe(html)
  })
  it('is there as text too', () => {
    const html = '<style>p{}</style><h1>Sum</h1><table><tr><td>a &lt; b</td><td>2</td></tr></table><p>x<br>y</p>'
    expect(canvasText(html)).toBe('Sum\na < b 2\nx\ny')
  })
})

it('is kept with the session, read with the key, and shown in a frame that allows nothing', async () => {
  const id = await present('<p onclick="x()">Hello</p>')
  const { body, status } = await read(id)
  expect(status).toBe(200)
  expect(body).toMatchObject({ canvas_id: id, agent_id: agent, title: 'A <b>', html: '<p>Hello</p>', text: 'Hello' })
  const frame = await test.request('GET', body.frame_url)
  expect(frame.status).toBe(200)
  expect(String(frame.body)).toContain('<title>A &#60;b&#62;</title>')
  expect(String(frame.body)).toContain('<p>Hello</p>')
  expect(frame.headers.get('content-security-policy')).toBe(sandboxPolicy)
  expect(frame.headers.get('x-frame-options')).toBe('SAMEORIGIN')
  expect(frame.headers.get('cache-control')).toBe('no-store')
})

it('has no address that can be guessed or kept', async () => {
  const [one, other] = [await present('<p>1</p>'), await present('<p>2</p>')]
  const { frame_url: url } = (await read(one)).body
  const [, , , pass = ''] = String(url).split('/')
  const [until = '', signature = ''] = pass.split('.')
  const later = (Date.now() + 86_400_000).toString(36)
  for (const wrong of [
    `/canvas/${other}/${pass}`,
    `/canvas/${one}/${later}.${signature}`,
    `/canvas/${one}/${until}.`,
    `/canvas/${one}/x`,
  ])
    expect((await test.request('GET', wrong)).status, wrong).toBe(404)
})

it('is refused when it is too large, or nothing is left of it', async () => {
  expect(await callTool(test, agent, 'canvas_present', { html: 'x'.repeat(1001) })).toMatchObject({
    failed: true,
    text: expect.stringContaining('[plugins.canvas] max_html_bytes'),
  })
  expect(await callTool(test, agent, 'canvas_present', { html: '<script>x</script>' })).toMatchObject({
    failed: true,
    text: expect.stringContaining('nothing is left of it'),
  })
})

it('is made once, and of a session the newest are kept, also of several in the same millisecond', async () => {
  vi.useFakeTimers({ toFake: ['Date'] })
  onTestFinished(() => void vi.useRealTimers())
  const session = { sessionId: '00000000-0000-4000-8000-00000000000a', turnId: 't' }
  const first = await present('<p>1</p>', { ...session, callId: 'a' })
  expect(await present('<p>1</p>', { ...session, callId: 'a' })).toBe(first)
  const second = await present('<p>2</p>', { ...session, callId: 'b' })
  const third = await present('<p>3</p>', { ...session, callId: 'c' })
  expect((await read(first)).status).toBe(404)
  expect((await read(second)).status).toBe(200)
  expect((await read(third)).status).toBe(200)
  const fourth = await present('<p>4</p>', { ...session, callId: 'd' })
  const fifth = await present('<p>5</p>', { ...session, callId: 'e' })
  const { items } = (await test.request<Json>('GET', `/api/canvas?session_id=${session.sessionId}`)).body
  expect(items.map(({ canvas_id: id }: Json) => id)).toEqual([fifth, fourth])
})

it('goes with its session', async () => {
  const { body } = await test.request<Json>('GET', `/api/agents/${agent}/session`)
  const id = await present('<p>1</p>', { sessionId: body.session_id })
  expect((await read(id)).status).toBe(200)
  expect((await test.request('DELETE', `/api/agents/${agent}/history`)).status).toBeLessThan(300)
  expect((await read(id)).status).toBe(404)
})
