import { mkdtemp, readdir, readFile, rm, stat, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { parse } from 'smol-toml'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { wholeSchema } from '../../../core/config/schema.ts'
import { editToml } from '../../../core/config/edit-toml.ts'
import { checkConfigValue, setConfigValue, toConfigValue } from '../../../core/config/set.ts'
import { OwnConfig, sections } from '../../../plugins/providers/config.ts'

describe('editing the text', () => {
  it.each([
    ['an empty file', '', ['log_level'], 'warn', 'log_level = "warn"\n'],
    [
      'a value with its comment',
      '# top\nlog_level = "info"   # why\n',
      ['log_level'],
      'warn',
      '# top\nlog_level = "warn"   # why\n',
    ],
    [
      'a new key of a section',
      '[http]\n# limit\nmax_json_depth = 5\n\n[tools]\n',
      ['http', 'open'],
      true,
      '[http]\n# limit\nmax_json_depth = 5\nopen = true\n\n[tools]\n',
    ],
    ['a new key of an empty section', '[http]\n[tools]\n', ['http', 'open'], true, '[http]\nopen = true\n[tools]\n'],
    ['a new section', 'log_level = "info"\n', ['http', 'open'], true, 'log_level = "info"\n\n[http]\nopen = true\n'],
    [
      'a new key above the first section and its comment',
      '# about http\n[http]\n',
      ['log_level'],
      'warn',
      'log_level = "warn"\n\n# about http\n[http]\n',
    ],
    [
      'a new key after those at the top',
      'a = 1 # one\n\n[http]\n',
      ['log_level'],
      'warn',
      'a = 1 # one\nlog_level = "warn"\n\n[http]\n',
    ],
    [
      'a list over several lines',
      '[outbound]\nallow = [ # hosts\n  "a", # first\n  "b]",\n]\n# end\n',
      ['outbound', 'allow'],
      ['c'],
      '[outbound]\nallow = ["c"]\n# end\n',
    ],
    [
      'a key inside an inline table',
      'http = { open = false, public = true } # x\n',
      ['http', 'open'],
      true,
      'http = { public = true, open = true } # x\n',
    ],
    [
      'a dotted key',
      'rate_limit.tokens_per_minute = 5\n',
      ['rate_limit', 'tokens_per_minute'],
      6,
      'rate_limit.tokens_per_minute = 6\n',
    ],
    [
      'a neighbour of a dotted key',
      'rate_limit.tokens_per_minute = 5\n[http]\n',
      ['rate_limit', 'failed_auth_per_minute'],
      6,
      'rate_limit.tokens_per_minute = 5\nrate_limit.failed_auth_per_minute = 6\n[http]\n',
    ],
    [
      'a file without a newline at its end',
      '[http]\nopen = true',
      ['http', 'public'],
      true,
      '[http]\nopen = true\npublic = true\n',
    ],
    [
      'lines of Windows',
      '[http]\r\nopen = true\r\n[tools]\r\n',
      ['http', 'public'],
      true,
      '[http]\r\nopen = true\r\npublic = true\r\n[tools]\r\n',
    ],
    ['a name that needs quotes', '', ['plugins', 'a b', 'x'], 1, '[plugins."a b"]\nx = 1\n'],
    [
      'strings that look like syntax',
      'a = """\n[http]\nopen = 1\n"""\nb = \'# no\' # yes\n',
      ['b'],
      'c',
      'a = """\n[http]\nopen = 1\n"""\nb = "c" # yes\n',
    ],
    [
      'a value with quotes and newlines',
      '',
      ['plugins', 'p', 'x'],
      'a "q"\n\\',
      '[plugins.p]\nx = """\na "q"\n\\\\"""\n',
    ],
    ['quotes that could end a text', '', ['x'], '\n"""\r"', 'x = """\n\n\\"\\""\\r\\""""\n'],
    [
      'a text of several lines',
      '[a]\nx = """\nold\n""" # said\n[b]\n',
      ['a', 'x'],
      'one\n"two"\n',
      '[a]\nx = """\none\n"two"\n""" # said\n[b]\n',
    ],
    [
      'a key that is removed with its comment',
      '[a] # top\nb = [\n  1,\n] # gone\nc = 2 # kept\n',
      ['a', 'b'],
      undefined,
      '[a] # top\nc = 2 # kept\n',
    ],
    ['a key that is removed from an inline table', 'a = { b = 1, c = 2 }\n', ['a', 'b'], undefined, 'a = { c = 2 }\n'],
    ['nothing where the key to remove is not there', '[a]\nb = 1\n', ['a', 'c'], undefined, '[a]\nb = 1\n'],
  ] as const)('changes %s', (_, text, path, value, wanted) => {
    const edited = editToml(text, path, value)
    expect(edited).toBe(wanted)
    expect(() => parse(edited)).not.toThrow()
  })
  it('refuses what it cannot change safely', () => {
    expect(() => editToml('[[http]]\nx = 1\n', ['http', 'open'], true)).toThrow(/edit it by hand|redefine|already/i)
  })
})

const schema = wholeSchema([{ name: 'providers', config: OwnConfig, sections }])

describe('the file', () => {
  let home: string
  beforeEach(async () => {
    home = await mkdtemp(join(tmpdir(), 'svc-set-'))
  })
  afterEach(() => rm(home, { recursive: true }))

  it('is made for its owner alone, with nothing beside it', async () => {
    await setConfigValue(join(home, 'new', 'config.toml'), 'log_level', 'warn', schema)
    expect((await stat(join(home, 'new', 'config.toml'))).mode & 0o777).toBe(0o600)
    expect(await readdir(join(home, 'new'))).toEqual(['config.toml'])
  })
  it('stays as it was when the key or the value is wrong', async () => {
    const file = join(home, 'config.toml')
    await writeFile(file, 'log_level = "info"\n')
    await expect(setConfigValue(file, 'log_levle', 'warn', schema)).rejects.toThrow('did you mean "log_level"?')
    await expect(setConfigValue(file, 'log_level', 'loud', schema)).rejects.toThrow('expected one of')
    for (const name of ['a\u0000b', 'a\nb', '', 'x'.repeat(4097)])
      await expect(setConfigValue(file, 'default_model', name, schema)).rejects.toThrow(
        'default_model: expected a text that is not empty, of one line',
      )
    await expect(setConfigValue(file, 'http', 'x', schema)).rejects.toThrow('is a section')
    await expect(setConfigValue(file, 'http.x.y', 'x', schema)).rejects.toThrow('unknown key')
    await expect(setConfigValue(file, 'plugins.__proto__.x', 'x', schema)).rejects.toThrow('not a key')
    expect(await readFile(file, 'utf8')).toBe('log_level = "info"\n')
  })
  it('is not touched when it is not valid TOML', async () => {
    const file = join(home, 'config.toml')
    await writeFile(file, 'a = = 1\n')
    await expect(setConfigValue(file, 'log_level', 'warn', schema)).rejects.toThrow(
      /config\.toml:1:\d+: not valid TOML/,
    )
    expect(await readFile(file, 'utf8')).toBe('a = = 1\n')
  })
  it('takes texts of the command line as what the key wants', () => {
    expect([
      toConfigValue('rate_limit.tokens_per_minute', '5', schema),
      toConfigValue('plugins.disabled', 'a,b', schema),
      toConfigValue('plugins.watch', 'on', schema),
      toConfigValue('default_model', '5', schema),
      toConfigValue('plugins.hello.n', '5', schema),
    ]).toEqual([5, ['a', 'b'], true, '5', 5])
    expect(() =>
      checkConfigValue(
        'x',
        'rate_limit.tokens_per_minute',
        toConfigValue('rate_limit.tokens_per_minute', 'five', schema),
        schema,
      ),
    ).toThrow('found the text "five"')
  })
})
