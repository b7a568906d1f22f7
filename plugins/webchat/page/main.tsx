import { render } from 'preact'
import { App } from './app.tsx'
import { Client } from './client.ts'
import { recall } from './credential.ts'

const root = document.getElementById('app')
if (root) {
  const client = new Client()
  render(<App client={client} />, root)
  // A page that the browser kept alive shows what whoever signed out meanwhile has left.
  addEventListener('pageshow', ({ persisted }) => {
    if (persisted && recall()?.key !== client.credential.value?.key) location.reload()
  })
  await client.start()
}
