import { useBuiltProcesses } from '../../core/process/process-file.ts'
import { PROCESSES } from './find-processes.ts'

const folder = process.env[PROCESSES]
if (folder !== undefined) useBuiltProcesses(folder)
