import { expect, it } from 'vitest'
import { documentOf } from '../../../core/http/page-document.ts'

const page = { path: 'a', title: 'Ships & <b>boats</b>', file: 'pages/a.html', assets: ['a.js', 'a.css', 'map.svg'] }

it('puts what all pages have around what is the own of one', () => {
  const text = documentOf(page, 'a.html', '<p>own</p>\n')
  expect(text).toContain('<h1>Ships &amp; &lt;b&gt;boats&lt;/b&gt;</h1>')
  expect(text.match(/(?:href|src)="[^"]+"/g)).toEqual([
    'href="/favicon.svg"',
    'href="../../kit/kit.css"',
    'href="a.css"',
    'src="a.js"',
  ])
  expect(text).toMatch(/<p id="problem"[^>]*><\/p>\n<p>own<\/p>\n/)
})

it('names files by their address where the document is not among them', () => {
  const text = documentOf(page, 'a.html', '', { folder: '/pages/sea/a/', windowTitle: 'Boats · Ships' })
  expect(text).toContain('<title>Boats · Ships</title>')
  expect(text).toContain('<h1>Ships &amp; ')
  expect(text.match(/(?:href|src)="[^"]+"/g)).toEqual([
    'href="/favicon.svg"',
    'href="/pages/sea/a/../../kit/kit.css"',
    'href="/pages/sea/a/a.css"',
    'src="/pages/sea/a/a.js"',
  ])
})

it('leaves the header to the page around a frame, and a whole document as it is', () => {
  expect(documentOf(page, 'a.html', '<p>own</p>\n', { isInFrame: true })).toContain('<header hidden>')
  expect(documentOf(page, 'a.html', '<!DOCTYPE html><p>own</p>')).toBe('<!DOCTYPE html><p>own</p>')
})
