import { describe, expect, it } from 'vitest'
import { allows } from '../../../plugins/shell/patterns.ts'
import { splitWords } from '../../../plugins/shell/words.ts'

describe('a command is split into words', () => {
  it.each<[string, readonly string[]]>([
    ['git status', ['git', 'status']],
    ['  echo   "two words"  \'and $three\' ', ['echo', 'two words', 'and $three']],
    [String.raw`echo a\ b "c\"d" 'e\f' ""`, ['echo', 'a b', 'c"d', String.raw`e\f`, '']],
    [`echo '; echo pwn $(id)'`, ['echo', '; echo pwn $(id)']],
    ['git log a~1 x#y {} !important', ['git', 'log', 'a~1', 'x#y', '{}', '!important']],
    ['ls a=b --x=y@z%:,.', ['ls', 'a=b', '--x=y@z%:,.']],
  ])('%s', (command, words) => {
    expect(splitWords(command)).toEqual({ kind: 'words', words })
  })

  it.each([
    ['ls | wc', '|'],
    ['a && b', '&'],
    ['a; b', ';'],
    ['cat < x', '<'],
    ['echo $(id)', '$'],
    ['echo "$(id)"', '$'],
    ['echo "`id`"', '`'],
    ['echo `id`', '`'],
    ['ls *.ts', '*'],
    ['echo $HOME', '$'],
    ['ls ~', '~'],
    ['a\nb', 'a line break'],
    ['echo {a,b}', '{'],
    ['echo # x', '#'],
    ['(a)', '('],
    ['x > y', '>'],
  ])('%s needs a shell because of %s', (command, operator) => {
    expect(splitWords(command)).toEqual({ kind: 'shell', operator })
  })

  it.each([['echo "a'], ["echo 'a"], [''], ['   '], ['echo a\\']])('%s cannot be read', (command) => {
    expect(splitWords(command).kind).toBe('malformed')
  })
})

const words = (text: string): readonly string[] => {
  const split = splitWords(text)
  return split.kind === 'words' ? split.words : ['sh', '-c', text]
}
const allowed = (patterns: readonly string[], command: string, ...names: readonly string[]): boolean => {
  const split = words(command)
  return allows(patterns, split, [split[0]?.split('/').at(-1) ?? '', ...names])
}

describe('what patterns allow', () => {
  it.each<[string, string]>([
    ['*', 'anything at all'],
    ['*', 'ls | wc'],
    ['git *', 'git status'],
    ['git *', 'git'],
    ['git status', 'git status'],
    ['git*', 'git log -3'],
    ['npm run test*', 'npm run test:unit --watch'],
    ['echo "a b" *', 'echo "a b" c'],
    ['cat *.txt', 'cat notes.txt'],
    ['python3 *', 'python3 script.py'],
    ['python3 -c *', 'python3 -c "print(1)"'],
    ['sh -c *', 'ls | wc'],
    ['sh *', 'ls | wc'],
    ['bash *', 'bash script.sh'],
    ['env *', 'env FOO=1 ls'],
    ['find *', 'find . -name "*.ts"'],
    ['find . -exec *', 'find . -exec ls {} +'],
    ['make *', 'make test'],
    ['sed *', 'sed -n 1p x'],
    ['python3', 'python3'],
  ])('%s allows %s', (pattern, command) => {
    expect(allowed([pattern], command)).toBe(true)
  })

  it.each<[string, string]>([
    ['git *', 'rm -rf x'],
    ['git status', 'git status --short'],
    ['git status', 'git push'],
    ['git', 'git status'],
    ['git *', 'github x'],
    ['git *', '/usr/bin/git x'],
    ['', 'ls'],
    ['git *', 'ls | wc'],
    ['ls *', 'ls; rm x'],
    ['echo *', 'echo $(id)'],
    ['python3 *', 'python3 -c "print(1)"'],
    ['python3 *', 'python3'],
    ['node *', 'node -e 1'],
    ['node *', 'node --eval 1'],
    ['perl *', 'perl -ne 1'],
    ['b*', 'bash x'],
    ['*sh *', 'bash -c x'],
    ['* *', 'bash -c x'],
    ['* -c *', 'sh -c x'],
    ['e*', 'env ls'],
    ['timeout*', 'timeout 5 ls'],
    ['find *', 'find . -exec rm {} +'],
    ['git *', 'git -c core.pager=x log'],
    ['tar *', 'tar --to-command=sh -xf a'],
    ['cat "a', 'cat "a"'],
    ['s*', 'sed 1e x'],
  ])('%s does not allow %s', (pattern, command) => {
    expect(allowed([pattern], command)).toBe(false)
  })

  it('a link to a shell is a shell, whatever its name', () => {
    expect(allowed(['./run *'], './run x', 'bash')).toBe(false)
    expect(allowed(['./run *'], './run x')).toBe(true)
    expect(allowed(['sh *'], 'sh x', 'dash')).toBe(true)
  })

  it('nothing is allowed without a pattern, nor by a hostile one, which would take for ever with backtracking', () => {
    expect(allowed([], 'ls')).toBe(false)
    expect(allowed([`x${'*a'.repeat(200)}`], `x${'a'.repeat(5000)}b`)).toBe(false)
  })
})
