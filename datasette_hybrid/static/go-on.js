// Presses the button of the page between unlocking and a private search.
"use strict";

document.getElementById("hy-go-on").requestSubmit();
