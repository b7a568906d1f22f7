// Vitest evaluates this file for every file of tests, and what it imports once for each process.
import './resolve-sources.ts'
