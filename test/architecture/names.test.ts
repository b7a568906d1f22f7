import { describe, expect, it } from 'vitest'
import { loadBuiltIns } from '../../core/cli/built-ins.ts'
import { coreCommands } from '../../core/cli/core-commands.ts'
import { code, sources } from './sources.ts'

describe('names and checks', () => {
  it('no file has a name that says nothing', () => {
    const banned = /\/(utils?|helpers?|common|misc|shared|types|constants|manager)\.tsx?$/
    expect(
      sources('core', 'plugins', 'adapters', 'test')
        .filter((file) => banned.test(file.path))
        .map((file) => file.path),
    ).toEqual([])
  })

  it('files and folders are kebab-case', () => {
    expect(
      sources('core', 'plugins', 'adapters', 'test')
        .map((file) => file.path)
        .filter((path) => !/^[a-z0-9./-]+$/.test(path)),
    ).toEqual([])
  })

  it('no type check is switched off', () => {
    const off = /@ts-(?:ignore|nocheck|expect-error)|oxlint-disable|eslint-disable/
    expect(
      sources('core', 'plugins', 'adapters', 'test')
        .filter((file) => !file.path.startsWith('test/architecture/') && off.test(file.text))
        .map((file) => file.path),
    ).toEqual([])
  })

  it('a command in a text is printed as it is typed where the program runs', async () => {
    const all = [coreCommands, ...(await loadBuiltIns()).map(({ commands = {} }) => commands)]
    // `commandLine` and `commandName` know how; the examples of a command are rendered by its help.
    const bare = new RegExp(`\\bsvc (?:${all.flatMap((commands) => Object.keys(commands)).join('|')}|--help)\\b`)
    const examples = /\bexamples: \[(?:\[[^\n]*\]\]|[^]*?\n {2,4}\]),|\bexamples: Command\['examples'\] = \[[^]*?\n\]/g
    expect(
      sources('core', 'plugins', 'adapters').flatMap(({ path, text }) =>
        code(text)
          .replaceAll(examples, '')
          .split('\n')
          .filter((line) => bare.test(line))
          .map((line) => `${path}: ${line.trim()}`),
      ),
    ).toEqual([])
  })
})
