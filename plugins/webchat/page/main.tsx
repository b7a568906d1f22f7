import { render } from 'preact'
import { App } from './app.tsx'
import { Client } from './client.ts'

const root = document.getElementById('app')
if (root) {
  const client = new Client()
  render(<App client={client} />, root)
  await client.start()
}
