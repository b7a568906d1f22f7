import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { systemNames } from '../../../plugins/security/contract.ts'
import { startHost } from '../../support/host.ts'
import type { TestHost } from '../../support/host.ts'
import type { Json } from '../../support/json.ts'

const KEY = 'a-key-for-this-test'
const bearer = { authorization: `Bearer ${KEY}` }

describe('GET /api/security', () => {
  describe('for who has the key', () => {
    let host: TestHost
    let body: Json
    beforeAll(async () => {
      host = await startHost({ config: { api_key: KEY, plugins: { security: { probe_timeout_ms: 20_000 } } } })
      const answer = await host.json('GET', '/api/security', undefined, bearer)
      expect(answer.status).toBe(200)
      body = answer.body
    })
    afterAll(async () => {
      await host[Symbol.asyncDispose]()
    })

    it.each(['/api/security', '/api/security/status'])('is at %s, and for nobody else', async (path) => {
      expect(await host.json('GET', path)).toMatchObject({ status: 401 })
      // Ten seconds belong to one run.
      expect((await host.json('GET', path, undefined, bearer)).body).toEqual(body)
    })
    it('names the sixteen systems, and all are active', () => {
      expect(Object.keys(body.security_systems)).toEqual([...systemNames])
      expect(body).toMatchObject({ total_systems: 16, all_active: true })
    })
    it.each(systemNames)('tries %s in more than one way, and none fails', (system) => {
      expect(body.probes[system]).toMatchObject({ failures: [], enforcement_count: 0, last_blocked_at: null })
      expect(body.probes[system].cases).toBeGreaterThan(1)
    })
    it('tries the detail of the health without the key', () => {
      expect(body.probes['health_redaction'].evidence).toContain('401')
    })
    it('does not tell where the home is', () => {
      expect(JSON.stringify(body)).not.toContain(host.home)
    })
  })

  it('counts what was really refused and nothing that a probe provoked', async () => {
    await using host = await startHost({
      config: { plugins: { security: { probe_timeout_ms: 20_000, on_demand_ms: 0 } } },
    })
    await host.json('GET', '/api/security')
    const agent = (
      await host.json('POST', '/api/agents', {
        manifest_toml: 'name = "trier"\n[capabilities]\ntools = ["*"]\nnetwork = ["*"]\n',
      })
    ).body.agent_id
    await host.json('GET', `/api/agents/${agent}/files/..%5Cpasswd`)
    await host.json('POST', `/api/agents/${agent}/message`, { message: 'use web_fetch {"url": "http://127.0.0.1:1/"}' })
    await host.json('POST', '/api/agents', { signed_manifest: { manifest: 'x' } })
    const { body } = await host.json('GET', '/api/security')
    const counts = Object.fromEntries(
      Object.entries<{ enforcement_count: number }>(body.probes).map(([name, { enforcement_count: count }]) => [
        name,
        count,
      ]),
    )
    expect(counts).toMatchObject({
      path_traversal_prevention: 1,
      ssrf_protection: 1,
      manifest_signing: 1,
      loop_guard: 0,
      taint_tracking: 0,
      gcra_rate_limiter: 0,
      ofp_hmac_auth: 0,
      prompt_injection_scanning: 0,
    })
    expect(body.probes['ssrf_protection'].last_blocked_at).toMatch(/^\d{4}-/)
    expect(await (await host.fetch('/api/metrics')).text()).toContain(
      'svc_security_enforcements_total{system="ssrf_protection"} 1',
    )
  })

  it('calls what could not be tried unknown, and nothing active that was not', async () => {
    await using host = await startHost({ listen: false, memory: true, plugins: ['audit', 'security', 'system'] })
    const { body } = await host.json('GET', '/api/security')
    expect(body.security_systems).toMatchObject({
      security_headers: 'unknown',
      health_redaction: 'unknown',
      gcra_rate_limiter: 'unknown',
      loop_guard: 'unknown',
      merkle_audit_trail: 'active',
      ssrf_protection: 'active',
    })
    expect(body.all_active).toBe(false)
    expect(body.total_systems).toBe(
      Object.values(body.security_systems).filter((status) => status !== 'unknown').length,
    )
  })

  it('does not count or audit what a probe could not try because the daemon ended', async () => {
    const home = await mkdtemp(join(tmpdir(), 'svc-probes-'))
    try {
      const first = await startHost({ home })
      const answer = first.fetch('/api/security')
      await first.fetch('/api/health')
      await Promise.all([first.stop(), answer])
      expect(first.log.filter((line) => line.includes('does not hold') || line.includes('first run'))).toEqual([])
      await using second = await startHost({ home })
      expect((await second.json('GET', '/api/audit/recent?event_type=security_system_failed')).body.total).toBe(0)
    } finally {
      await rm(home, { recursive: true, force: true })
    }
  })

  it('runs by itself once the port is open, and goes on after a reload', async () => {
    await using host = await startHost({
      plugins: ['audit', 'security', 'system'],
      config: { plugins: { security: { first_probe_ms: 0, on_demand_ms: 3_600_000, probe_interval_ms: 3_600_000 } } },
    })
    const checked = async (): Promise<unknown> =>
      /merkle_audit_trail[^]*"checked_at":"/.test(JSON.stringify((await host.json('GET', '/api/security')).body))
    await expect.poll(checked).toBe(true)
    await host.app.daemon.reload('security')
    await expect.poll(checked).toBe(true)
  })
})
