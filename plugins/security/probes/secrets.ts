import { randomBytes } from 'node:crypto'
import { inspect } from 'node:util'
import { createMask, SecretBytes } from 'svc/internal'
import type { Finding, ProbeCase } from '../contract.ts'
import type { ProbeTools } from '../probes.ts'

const NAME = 'probe-canary'
/** The same at every run: whatever the vault is given is one of the secrets that tool calls are searched for. */
const canary = `canary-${randomBytes(18).toString('base64url')}`

/** A secret in memory, wiped; the vault, which must give it back and then forget it; the mask of the log. */
export async function probe({ vault }: ProbeTools): Promise<Finding> {
  const secret = new SecretBytes(canary)
  const alias = secret.use((bytes) => bytes)
  const cases: ProbeCase[] = [
    { name: 'its bytes can be used', passed: secret.use((bytes) => bytes.toString()) === canary },
    ...printed(secret).map(([name, text]) => ({
      name: `${name} shows nothing`,
      passed: !text.includes(canary) && !text.includes(alias.toString('hex')),
    })),
    { name: 'it cannot be cloned into another thread', passed: throws(() => structuredClone(secret)) },
    { name: 'it stands in no shared pool', passed: alias.buffer.byteLength === alias.byteLength },
  ]
  secret[Symbol.dispose]()
  cases.push(
    { name: 'disposing overwrites it', passed: alias.every((byte) => byte === 0) },
    { name: 'and ends its use', passed: throws(() => secret.use((bytes) => bytes)) },
  )
  await vault.write(NAME, canary)
  cases.push({ name: 'the vault gives it back', passed: (await vault.read(NAME)) === canary })
  cases.push({
    name: 'the vault removes it',
    passed: (await vault.remove(NAME)) && (await vault.read(NAME)) === undefined,
  })
  const mask = createMask()
  mask.register(canary)
  cases.push(
    {
      name: 'the log masks it',
      passed:
        !mask.text(`value ${canary} end`).includes(canary) &&
        !JSON.stringify(mask.value({ deep: [{ text: `x${canary}` }] }, true)).includes(canary),
    },
    { name: 'and leaves other text alone', passed: mask.text('value of nothing') === 'value of nothing' },
  )
  return {
    cases,
    evidence: 'bytes are wiped; a key is a string, which nobody can wipe, while a request with it is made',
  }
}

function printed(secret: SecretBytes): readonly (readonly [string, string])[] {
  return [
    ['as text', String(secret)],
    ['in a template', `${secret}`],
    ['as JSON', JSON.stringify({ secret })],
    ['inspected', inspect(secret, { showHidden: true, depth: 5 })],
    ['put together', ['', secret].join('')],
    ['in an error', new Error(`failed with ${secret}`, { cause: secret }).stack ?? ''],
  ]
}

function throws(work: () => unknown): boolean {
  try {
    work()
    return false
  } catch {
    return true /* which is what is asked for */
  }
}
