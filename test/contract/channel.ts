import { deepStrictEqual, ok } from 'node:assert/strict'
import { describe, it } from 'vitest'
import type { ChannelAdapter } from 'svc/channels'
import type { FakePlatform } from '../support/platforms/platform.ts'
import type { ChannelCheck } from './channel-checks/check.ts'
import { connecting } from './channel-checks/connecting.ts'
import { faults } from './channel-checks/faults.ts'
import { receiving } from './channel-checks/receiving.ts'
import { sending } from './channel-checks/sending.ts'
import { ChannelStage } from './channel-stage.ts'

/** What every adapter does, whatever it talks to. */
export const checks: readonly ChannelCheck[] = [...receiving, ...sending, ...faults, ...connecting]

/** Runs one check, and then what has to hold after every one. */
export async function runCheck(check: ChannelCheck, stage: ChannelStage): Promise<void> {
  await check.run(stage)
  if (!check.expectsViolations)
    deepStrictEqual(stage.platform.violations, [], 'the platform refused what the adapter sent')
  const output = [...stage.test.logged, ...stage.errors.map(describeError)].join('\n')
  for (const secret of stage.platform.secrets) ok(!output.includes(secret), `a secret was put out: ${output}`)
}

function describeError(error: unknown): string {
  if (!(error instanceof Error)) return JSON.stringify(error) ?? ''
  return `${error.message} ${error.stack} ${JSON.stringify(error)} ${error.cause === undefined ? '' : describeError(error.cause)}`
}

/** A channel under the suite. */
export interface ChannelRow {
  readonly name: string
  readonly load: () => Promise<{ readonly default: ChannelAdapter }>
  readonly start: () => Promise<FakePlatform>
}

/** Registers every check as a test. Those that do not apply to the adapter are skipped. */
export function testChannel({ name, load, start }: ChannelRow): void {
  describe(name, () => {
    for (const check of checks)
      it(`${check.id}: ${check.title}`, async (context) => {
        await using stage = new ChannelStage((await load()).default, await start())
        if (check.applies?.(stage) === false) return context.skip('does not apply')
        await runCheck(check, stage)
      })
  })
}
