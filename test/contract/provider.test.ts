import { describe, expect, it } from 'vitest'
import { openAnthropic } from '../support/anthropic-stage.ts'
import { openBuiltin, openCompatible } from '../support/provider-stage.ts'
import { brokenDrivers } from '../fixtures/broken-providers.ts'
import { checks, testProvider } from './provider.ts'
import { drivers } from './provider-drivers.ts'

for (const { name, open, ...facts } of drivers) testProvider(name, open, facts)

describe('the suite finds drivers that break the contract', () => {
  for (const { id, driver, network } of brokenDrivers) {
    it(`fails ${id}`, async () => {
      const check = checks.find((one) => one.id === id)
      if (!check) throw new Error(`there is no check ${id}`)
      await using stage = await (network === 'anthropic'
        ? openAnthropic(undefined, driver)
        : network
          ? openCompatible(driver)
          : openBuiltin(driver))
      await expect(check.run(stage)).rejects.toThrow()
    })
  }
})
