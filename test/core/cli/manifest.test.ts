import { mkdtemp, readFile, rm, stat, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { runHere } from './here.ts'

let folder: string
beforeEach(async () => {
  folder = await mkdtemp(join(tmpdir(), 'svc-manifest-'))
})
afterEach(async () => {
  await rm(folder, { recursive: true, force: true })
})
const file = (name: string): string => join(folder, name)

async function keygen(): Promise<string> {
  const { stdout } = await runHere(['manifest', 'keygen', file('signer.pem'), '--json'])
  return (JSON.parse(stdout) as { public_key: string }).public_key
}

describe('svc manifest', () => {
  it('makes a key, signs with it and believes what it signed', async () => {
    const key = await keygen()
    expect((await stat(file('signer.pem'))).mode & 0o777).toBe(0o600)
    await writeFile(file('scout.toml'), 'name = "scout"\nversion = "2.0.0"\n# ä\n')
    expect(
      await runHere([
        'manifest',
        'sign',
        file('scout.toml'),
        '--key',
        file('signer.pem'),
        '--signer',
        'ops',
        '--out',
        file('scout.json'),
      ]),
    ).toMatchObject({ code: 0, stdout: '' })
    expect(JSON.parse(await readFile(file('scout.json'), 'utf8'))).toMatchObject({
      name: 'scout',
      version: '2.0.0',
      signer_id: 'ops',
      signer_public_key: key,
      manifest: 'name = "scout"\nversion = "2.0.0"\n# ä\n',
    })
    expect(await runHere(['manifest', 'verify', file('scout.json'), '--trusted', key])).toMatchObject({
      code: 0,
      stdout: `agent "scout" 2.0.0 is signed by ops (${key})\n`,
    })
    await writeFile(file('config.toml'), `[manifest_signing]\npolicy = "require"\ntrusted_signers = ["${key}"]\n`)
    expect(await runHere(['manifest', 'verify', file('scout.json'), '--home', folder, '--json'])).toMatchObject({
      code: 0,
      stdout: expect.stringContaining('"valid": true') as string,
    })
  })

  it('refuses what was changed, and what nobody trusted signed, with exit code 5', async () => {
    const key = await keygen()
    await writeFile(file('scout.toml'), 'name = "scout"\n')
    const { stdout } = await runHere(['manifest', 'sign', file('scout.toml'), '--key', file('signer.pem')])
    await writeFile(file('scout.json'), stdout.replace('scout\\"\\n', 'scout\\"\\ntools_disabled = false\\n'))
    expect(await runHere(['manifest', 'verify', file('scout.json'), '--trusted', key])).toMatchObject({
      code: 5,
      stderr: expect.stringContaining('hash') as string,
    })
    await writeFile(file('scout.json'), stdout)
    expect(await runHere(['manifest', 'verify', file('scout.json'), '--home', folder])).toMatchObject({
      code: 5,
      stderr: expect.stringContaining('trusted_signers') as string,
    })
    expect(await runHere(['manifest', 'verify', file('scout.json'), '--trusted', 'abc'])).toMatchObject({
      code: 5,
      stderr: expect.stringContaining('trusted_signers[0]') as string,
    })
  })

  it('says what is wrong with a file, and never writes over a key', async () => {
    await keygen()
    expect(await runHere(['manifest', 'keygen', file('signer.pem')])).toMatchObject({
      code: 1,
      stderr: expect.stringContaining('exists already') as string,
    })
    expect(await runHere(['manifest', 'sign', file('none.toml'), '--key', file('signer.pem')])).toMatchObject({
      code: 4,
    })
    await writeFile(file('broken.toml'), 'name = ')
    expect(await runHere(['manifest', 'sign', file('broken.toml'), '--key', file('signer.pem')])).toMatchObject({
      code: 1,
      stderr: expect.stringContaining('not valid TOML') as string,
    })
    await writeFile(file('latin.toml'), Buffer.from([0x6e, 0xe4]))
    expect(await runHere(['manifest', 'sign', file('latin.toml'), '--key', file('signer.pem')])).toMatchObject({
      code: 1,
      stderr: expect.stringContaining('UTF-8') as string,
    })
    expect(await runHere(['manifest', 'sign', file('broken.toml')])).toMatchObject({ code: 2 })
    await writeFile(file('ok.toml'), 'name = "ok"\n')
    expect(await runHere(['manifest', 'sign', file('ok.toml'), '--key', file('ok.toml')])).toMatchObject({
      code: 1,
      stderr: expect.stringContaining('PEM') as string,
    })
  })
})
