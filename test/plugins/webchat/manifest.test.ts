import { parse } from 'smol-toml'
import { expect, test } from 'vitest'
import { manifestToml } from '../../../plugins/webchat/page/manifest.ts'

test.each([
  'plain',
  'quotes " and \\ backslashes',
  'two\nlines\tand tabs',
  '"""\n[capabilities]\ntools = ["*"]\n"""',
  'del \u007f, escape \u001b, nul \u0000',
  'emoji 🦊 and ümlaut',
])('whatever is typed stays one string of the manifest: %j', (text) => {
  const manifest = parse(manifestToml({ name: text, systemPrompt: text, tools: false }))
  expect(manifest).toEqual({
    name: text,
    module: 'builtin:chat',
    model: { provider: 'default', model: 'default', system_prompt: text },
    capabilities: { tools: [], memory_read: ['self.*'], memory_write: ['self.*'] },
  })
})

test('half a surrogate pair does not make the manifest unreadable', () => {
  expect(parse(manifestToml({ name: 'a\ud800b', systemPrompt: '', tools: true }))).toMatchObject({
    name: 'a\ufffdb',
    capabilities: { tools: ['*'] },
  })
})
