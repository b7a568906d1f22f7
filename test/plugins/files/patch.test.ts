import { describe, expect, it } from 'vitest'
import { applyHunks, parsePatch } from '../../../plugins/files/patch.ts'

const patch = (...lines: readonly string[]): string => ['*** Begin Patch', ...lines, '*** End Patch'].join('\n')
const apply = (text: string, ...lines: readonly string[]): string => {
  const [edit] = parsePatch(patch('*** Update File: f', ...lines))
  if (edit?.kind !== 'update') throw new Error('no update')
  return applyHunks('f', text, edit.hunks)
}

describe('a patch is read', () => {
  it('with all that it does to several files', () => {
    expect(
      parsePatch(
        patch(
          '*** Add File: a/b.txt',
          '+one',
          '+',
          '+two',
          '*** Delete File: c',
          '*** Update File: d',
          '*** Move to: e',
          '@@ head',
          ' x',
          '-y',
          '+z',
        ),
      ),
    ).toEqual([
      { kind: 'add', path: 'a/b.txt', content: 'one\n\ntwo\n' },
      { kind: 'delete', path: 'c' },
      {
        kind: 'update',
        path: 'd',
        moveTo: 'e',
        hunks: [
          {
            after: 'head',
            lines: [
              { sign: ' ', text: 'x' },
              { sign: '-', text: 'y' },
              { sign: '+', text: 'z' },
            ],
          },
        ],
      },
    ])
  })
  it('as a unified diff', () => {
    const diff = [
      'diff --git a/f b/f',
      '--- a/f',
      '+++ b/f',
      '@@ -1,2 +1,2 @@ context',
      ' a',
      '-b',
      '+c',
      '--- /dev/null',
      '+++ b/new',
      '@@ -0,0 +1 @@',
      '+hello',
      '--- a/old',
      '+++ /dev/null',
      '@@ -1 +0,0 @@',
      '-x',
      '',
    ].join('\n')
    expect(parsePatch(diff)).toMatchObject([
      { kind: 'update', path: 'f' },
      { kind: 'add', path: 'new', content: 'hello\n' },
      { kind: 'delete', path: 'old' },
    ])
  })
  it.each([
    ['nothing'],
    ['*** Begin Patch\n*** Update File: x'],
    ['*** Begin Patch\nwhat\n*** End Patch'],
    [patch('*** Add File: x', 'no plus')],
    [patch('*** Update File: x', '@@', '?what')],
    [''],
  ])('unless it is none: %j', (text) => {
    expect(() => parsePatch(text)).toThrow(expect.objectContaining({ code: 'invalid_request' }))
  })
})

describe('hunks are applied', () => {
  it('in order, each after the one before', () => {
    expect(apply('a\nb\na\nb\n', '@@', ' a', '-b', '+1', '@@', ' a', '-b', '+2')).toBe('a\n1\na\n2\n')
  })
  it('after the line that was named', () => {
    expect(apply('one {\n  x\n}\ntwo {\n  x\n}\n', '@@ two {', '-  x', '+  y')).toBe('one {\n  x\n}\ntwo {\n  y\n}\n')
  })
  it('with trailing space and line ends as the file has them', () => {
    expect(apply('a  \r\nb\r\n', ' a', '-b', '+c')).toBe('a  \r\nc\r\n')
    expect(apply('a\nb', ' a', '-b', '+c')).toBe('a\nc')
  })
  it('at the end when nothing is looked for', () => {
    expect(apply('a\n', '@@', '+b')).toBe('a\nb\n')
  })
  it('not at all when the lines are not there', () => {
    expect(() => apply('a\n', '-b', '+c')).toThrow(
      expect.objectContaining({ code: 'conflict', message: expect.stringContaining('b') }),
    )
  })
})
