import { describe, expect, it } from 'vitest'
import { sources } from './sources.ts'

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
})
