import { describe, expect, it } from 'vitest'
import { assessCommand, harmOf } from '../../../plugins/shell/harm.ts'

describe('the harm of a command', () => {
  it.each([
    [
      'low',
      ['ls', 'ls -la src', 'date', 'date +%s', 'cat notes.md', 'sort -rn list', 'grep -r TODO src', 'echo hello'],
    ],
    ['medium', ['cat /etc/passwd', 'ls ../other', 'grep -f/etc/shadow x', 'git status', 'git diff']],
    [
      'high',
      [
        './ls',
        'npm test',
        'node server.js',
        'git push',
        'git diff --output=x',
        'date -s 2020-01-01',
        'date 01010000',
        'sort -o x y',
        'sort --compress-program=./x y',
        'tee x',
        'cp a b',
      ],
    ],
    [
      'critical',
      [
        'rm -r build',
        'sh -c ls',
        'ls | sh',
        'ls; ls',
        'env ls',
        'python3 -c 1',
        'git -c core.pager=x log',
        'find . -exec ls',
        'sudo ls',
        'curl https://example.com',
        'dd if=a of=b',
        '/bin/rm x',
        'ls $(x)',
      ],
    ],
  ] as const)('is %s', (harm, commands) => {
    for (const command of commands) expect([command, assessCommand(command).harm]).toEqual([command, harm])
  })
  it('is that of the words where they come one by one', () => {
    expect(assessCommand('ls', ['a; rm -r b']).harm).toBe('low')
    expect(assessCommand('sh', ['-c', 'ls']).harm).toBe('critical')
    expect(harmOf([])).toBe('high')
  })
})
