import { testProvider } from './provider.ts'
import { programDrivers } from './provider-drivers.ts'

for (const { name, open, ...facts } of programDrivers) testProvider(name, open, { ...facts, concurrent: true })
