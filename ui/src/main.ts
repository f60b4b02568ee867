import { mount } from "svelte";

import "./app.css";
import App from "./App.svelte";
import { backend } from "./lib/backend/here";

const target = document.getElementById("app");
if (target) mount(App, { target, props: { backend: await backend() } });
