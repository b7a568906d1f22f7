import { defineProviders } from 'svc/providers'
import { openAiCompatible } from './driver.ts'
import { vendors } from './vendors.ts'

export default defineProviders('openai-compatible', '1.0.0', vendors.map(openAiCompatible))
