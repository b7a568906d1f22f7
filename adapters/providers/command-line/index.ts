import { defineProviders } from 'svc/providers'
import { commandLine } from './driver.ts'
import { programs } from './programs.ts'

export default defineProviders('command-line', '1.0.0', ({ spawn }) =>
  programs.map((program) => commandLine(program, spawn)),
)
