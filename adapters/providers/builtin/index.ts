import { defineProvider } from 'svc/providers'
import { builtin } from './driver.ts'

export default defineProvider('1.0.0', builtin)
